package fakenode

import (
	"context"
	"sync"
)

// runAll runs all functions until ctx is done or one of them returns an error, which it
// returns after the others have returned. The first runs on the goroutine of the caller, which
// would only wait: each goroutine exists once per node.
func runAll(ctx context.Context, runs ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	var once sync.Once
	var first error
	one := func(run func(context.Context) error) {
		if err := run(ctx); err != nil {
			once.Do(func() { first = err })
			cancel()
		}
	}
	for _, run := range runs[1:] {
		wg.Go(func() { one(run) })
	}
	one(runs[0])
	wg.Wait()
	return first
}
