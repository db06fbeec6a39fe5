package seedrun

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Seed returns the seed of a test with random inputs: 1, so that every run of the tests is the
// same, a random one if KUBEPARTS_FRESH_SEEDS is 1, or KUBEPARTS_SEED if it is set, which repeats
// a failure. A test that fails logs the seed and how to repeat it.
//
// A test that needs several seeds adds to it.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := uint64(1)
	if text := os.Getenv("KUBEPARTS_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("KUBEPARTS_SEED: %v", err)
		}
	} else if os.Getenv("KUBEPARTS_FRESH_SEEDS") == "1" {
		seed = rand.Uint64()
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d: KUBEPARTS_SEED=%d repeats it", seed, seed)
		}
	})
	return seed
}

// Rand returns the random numbers of Seed.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(Seed(t), 0))
}
