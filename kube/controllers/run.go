package controllers

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// Run runs controllers against the API server of api until ctx is done; then it returns
// nil. It returns an error if cfg is invalid or a controller cannot be constructed. Requests
// are not rate-limited unless api has a QPS or a RateLimiter.
//
// It is not an error that the API server does not respond or does not serve a resource:
// controllers that need it do nothing until it does. [Start] reports it.
func Run(ctx context.Context, api *rest.Config, cfg Config) error {
	return run(ctx, api, cfg, func(error) {})
}

// run is Run. It calls synced when all caches are synchronized or, if ctx is done before,
// with an error that names those that are not.
func run(ctx context.Context, api *rest.Config, cfg Config, synced func(error)) error {
	if err := cfg.complete(api); err != nil {
		return err
	}
	chosen, err := choose(cfg.Controllers, all)
	if err != nil {
		return err
	}
	if cfg.Scheduler {
		chosen = append(chosen[:len(chosen):len(chosen)], kubeScheduler)
	}
	e, err := newEnv(api, cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(klog.NewContext(ctx, logr.FromSlogHandler(cfg.Logger.Handler())))
	defer cancel()
	runs, err := e.build(ctx, chosen)
	if err == nil {
		e.start(ctx)
	} else {
		cancel()
	}
	var wg sync.WaitGroup
	for _, run := range runs {
		wg.Go(func() { run(ctx) })
	}
	if err == nil {
		synced(e.wait(ctx))
	}
	wg.Wait()
	e.shutdown()
	return err
}

// build constructs controllers and returns the functions that run them, all of which must
// be called. If one cannot be constructed, it returns the functions of those before it, to
// be called with a ctx that is done.
func (e *env) build(ctx context.Context, chosen []component) ([]func(context.Context), error) {
	runs := []func(context.Context){e.refresh}
	for _, c := range chosen {
		client, err := e.client(c.name)
		if err != nil {
			return runs, err
		}
		run, err := c.build(klog.NewContext(ctx, klog.LoggerWithName(klog.FromContext(ctx), c.name)), e, client)
		if err != nil {
			return runs, fmt.Errorf("controllers: %s: %w", c.name, err)
		}
		runs = append(runs, run)
	}
	return runs, nil
}
