// SPDX-License-Identifier: MIT OR Apache-2.0

import java.util.HashMap;
import java.util.Map;

/** A HashMap of KEYS random numbers, then LOOKUPS lookups, half of which find nothing. */
public final class Counts {
    private static long step(long state) {
        return state * 6364136223846793005L + 1442695040888963407L;
    }

    /** Prints the sum of what was found. */
    public static void main(String[] arguments) {
        int keys = Integer.parseInt(arguments[0]);
        int lookups = Integer.parseInt(arguments[1]);
        Map<Long, Long> map = new HashMap<>();
        long state = 1;
        for (int i = 0; i < keys; i++) {
            state = step(state);
            map.put((long) i, state);
        }
        long found = 0;
        for (int i = 0; i < lookups; i++) {
            state = step(state);
            found += map.getOrDefault((state >>> 20) % (2L * keys), 1L);
        }
        System.out.println(found);
    }
}
