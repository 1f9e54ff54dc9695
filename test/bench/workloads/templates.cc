// SPDX-License-Identifier: Apache-2.0
// Names of the standard library's templates, inlined and not. See names.py.
#include <algorithm>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace shop
{
template <typename Key, typename Value> struct Item {
	Key key;
	Value value;
	bool operator<(const Item &other) const { return value < other.value; }
};

template <typename Container, typename Function> [[gnu::noinline]] void each(Container &items, Function function)
{
	for (auto &item : items)
		function(item);
}

template <typename Key> class Index
{
	std::map<Key, std::vector<Item<Key, int>>> sorted;
	std::unordered_map<Key, std::shared_ptr<Item<Key, int>>> hashed;

    public:
	[[gnu::noinline]] void add(const Key &key, int value)
	{
		sorted[key].push_back({key, value});
		hashed[key] = std::make_shared<Item<Key, int>>(Item<Key, int>{key, value});
	}
	[[gnu::noinline]] long sum()
	{
		long total = 0;
		std::function<void(Item<Key, int> &)> count = [&](Item<Key, int> &item) { total += item.value; };

		each(sorted, [&](auto &entry) {
			std::sort(entry.second.begin(), entry.second.end());
			each(entry.second, count);
		});
		each(hashed, [&](auto &entry) { total += entry.second->value; });
		return total;
	}
};
} // namespace shop

int main(int argc, char **argv)
{
	const std::time_t end = std::time(nullptr) + (argc > 1 ? std::stoi(argv[1]) : 5);
	volatile long sink = 0;

	while (std::time(nullptr) < end) {
		shop::Index<std::string> index;

		for (int i = 0; i < 20000; i++)
			index.add("key-" + std::to_string(i * 7919 % 4096), i * 31 % 1000);
		sink = sink + index.sum();
	}
}
