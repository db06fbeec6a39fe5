package simcri_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/sim"
	"github.com/kubeparts/kubeparts/sim/simcri"
)

func runSeed(t *testing.T, seed uint64) (report *sim.Report) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var err error
		report, err = sim.Run(t.Context(), sim.Config{Seed: seed, Machine: simcri.In(dir)})
		require.NoError(t, err, "seed %d", seed)
	})
	return report
}

func TestZZSeeds(t *testing.T) {
	from, _ := strconv.ParseUint(os.Getenv("ZFROM"), 10, 64)
	n, _ := strconv.ParseUint(os.Getenv("ZN"), 10, 64)
	start := time.Now()
	for seed := from; seed < from+n; seed++ {
		r := runSeed(t, seed)
		for _, v := range r.Violations {
			fmt.Printf("V seed=%d %s\n", seed, v)
		}
		if os.Getenv("ZTRACE") != "" {
			for _, e := range r.Trace {
				fmt.Println(e)
			}
		}
	}
	fmt.Printf("%.1f seeds/s\n", float64(n)/time.Since(start).Seconds())
}
