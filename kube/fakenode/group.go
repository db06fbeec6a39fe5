package fakenode

import (
	"context"
	"sync"
)

// runAll runs all functions until ctx is done or one of them returns an error, which it
// returns after the others have returned.
func runAll(ctx context.Context, runs ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	var once sync.Once
	var first error
	for _, run := range runs {
		wg.Go(func() {
			if err := run(ctx); err != nil {
				once.Do(func() { first = err })
				cancel()
			}
		})
	}
	wg.Wait()
	return first
}
