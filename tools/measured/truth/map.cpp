// SPDX-License-Identifier: MIT OR Apache-2.0
// std::unordered_map and std::map of KEYS random keys, filled and looked up.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <unordered_map>

template <class Map> static uint64_t run(long keys, long lookups)
{
	Map map;
	uint64_t state = 1, found = 0;
	auto next = [&] { return (state = state * 6364136223846793005 + 1442695040888963407) >> 24; };

	for (long i = 0; i < keys; i++)
		map[next()] = i;
	state = 1;
	for (long i = 0; i < lookups; i++) {
		auto at = map.find(next() ^ (i % 4 == 0));
		found += at == map.end() ? 1 : at->second;
	}
	return found;
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		std::fprintf(stderr, "map hash|tree KEYS LOOKUPS\n");
		return 2;
	}
	long keys = std::atol(argv[2]), lookups = std::atol(argv[3]);
	bool tree = std::string(argv[1]) == "tree";
	uint64_t found = tree ? run<std::map<uint64_t, uint64_t>>(keys, lookups)
			      : run<std::unordered_map<uint64_t, uint64_t>>(keys, lookups);
	std::printf("%llu\n", (unsigned long long)found);
}
