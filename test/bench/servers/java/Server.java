// SPDX-License-Identifier: Apache-2.0
package bench;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** A server of Spring Boot (Tomcat): JSON, sorting, streams, a regular expression, SHA-256. */
@SpringBootApplication
@RestController
public class Server {
    record Article(String name, int price) {}

    private static final Pattern WORD = Pattern.compile("(\\w+)-(\\d+)");
    private final List<Article> articles =
            IntStream.range(0, 200).mapToObj(i -> new Article("thing-" + i, i * 37 % 101)).toList();

    private static String price(Article a) {
        return a.price() > 50 ? a.price() + " (dear)" : String.valueOf(a.price());
    }

    private static List<String> words(String page) {
        List<String> words = new ArrayList<>();
        for (Matcher m = WORD.matcher(page.toLowerCase()); m.find(); )
            words.add(m.group(1) + m.group(2));
        return words;
    }

    @GetMapping("/")
    Map<String, Object> show() throws Exception {
        List<Article> dear = articles.stream().filter(a -> a.price() > 20)
                .sorted(Comparator.comparing(Article::price).reversed().thenComparing(Article::name)).toList();
        String page = dear.stream().limit(40).map(a -> "<li>" + a.name().toUpperCase() + ": " + price(a) + "</li>")
                .collect(Collectors.joining());
        byte[] sum = MessageDigest.getInstance("SHA-256").digest(page.getBytes(StandardCharsets.UTF_8));
        return Map.of("page", page, "words", words(page), "dear", dear, "sum", HexFormat.of().formatHex(sum));
    }

    public static void main(String[] args) {
        SpringApplication.run(Server.class, args);
    }
}
