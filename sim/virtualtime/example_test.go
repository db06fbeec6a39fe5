package virtualtime_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/kubeparts/kubeparts/sim/virtualtime"
)

// A day with a ticker, in milliseconds.
func ExampleRun() {
	err := virtualtime.Run(func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 24*time.Hour+time.Minute)
		defer cancel()
		hourly := time.NewTicker(time.Hour)
		defer hourly.Stop()
		began := time.Now()
		for ticks := 0; ; ticks++ {
			select {
			case <-hourly.C:
			case <-ctx.Done():
				fmt.Println(ticks, "hours,", time.Since(began))
				return nil
			}
		}
	})
	if err != nil {
		log.Fatal(err)
	}

	// Output: 24 hours, 24h1m0s
}
