package fakenode

import (
	"context"
	"sync"
)

// together runs all until ctx ends, or one of them returns an error, which is then
// returned when the others have ended too.
func together(ctx context.Context, runs ...func(context.Context) error) error {
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
