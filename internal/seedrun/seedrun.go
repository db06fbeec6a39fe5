// Package seedrun has the seeds of random tests, and runs a test with many of them. It is test support.
package seedrun

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

// Of returns the range of seeds to run, without to. Their number is n, or
// KUBEPARTS_SIM_SEEDS if it is set; the first is KUBEPARTS_SIM_FROM, or 0 if it is not set.
func Of(t *testing.T, n uint64) (from, to uint64) {
	t.Helper()
	read := func(name string, value *uint64) {
		if text := os.Getenv(name); text != "" {
			var err error
			if *value, err = strconv.ParseUint(text, 10, 64); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	read("KUBEPARTS_SIM_SEEDS", &n)
	read("KUBEPARTS_SIM_FROM", &from)
	return from, from + n
}

// Each runs check with each of the seeds, four in parallel.
func Each(t *testing.T, n uint64, check func(t *testing.T, seed uint64)) {
	from, to := Of(t, n)
	begun := time.Now()
	t.Run("seeds", func(t *testing.T) {
		const shards = 4
		for shard := range uint64(shards) {
			t.Run(fmt.Sprint("of ", shard), func(t *testing.T) {
				t.Parallel()
				for seed := from + shard; seed < to && !t.Failed(); seed += shards {
					check(t, seed)
				}
			})
		}
	})
	t.Logf("%.0f seeds per second", float64(to-from)/time.Since(begun).Seconds())
}
