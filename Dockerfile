# SPDX-License-Identifier: Apache-2.0
# The agent's image. Built by 'make image' with whatever of buildah, podman or docker is there.
ARG BASE=docker.io/library/debian:bookworm-slim

FROM ${BASE} AS build
ARG VERSION=unknown
COPY test/setup.sh /src/test/setup.sh
RUN /src/test/setup.sh build
COPY . /src
RUN make -C /src -j"$(nproc)" B=/src/build/image VERSION="$VERSION" install DESTDIR=/out PREFIX=/usr && strip /out/usr/bin/podprof

FROM ${BASE}
# What 'ldd podprof' lists; the names are those of Debian 12.
RUN apt-get update -q && \
    apt-get install -q -y --no-install-recommends ca-certificates libbpf1 libcurl4 libdw1 libelf1 \
        libjansson4 libmicrohttpd12 libpcre2-8-0 libprotobuf-c1 zlib1g && \
    rm -rf /var/lib/apt/lists/*
COPY --from=build /out/usr/bin/podprof /usr/bin/podprof
COPY LICENSE /usr/share/doc/podprof/LICENSE
EXPOSE 7070
ENTRYPOINT ["/usr/bin/podprof"]
CMD ["agent"]
