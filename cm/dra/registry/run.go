package registry

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	firstHealthRetry = time.Second
	lastHealthRetry  = time.Minute
)

// Run keeps the connections to the plugins established, receives the health of devices and
// deletes the ResourceSlices of drivers that are not connected, until ctx is done. It first
// deletes those of all drivers of the node: those that are there publish theirs again. It
// closes the connections, and returns nil when everything that it started has returned. A
// second call returns an error.
func (r *Registry) Run(ctx context.Context) error {
	if err := r.ran.Enter("registry: Registry"); err != nil {
		return err
	}
	r.mu.Lock()
	r.start = func(c *connection) { r.startConnection(ctx, c) }
	for _, c := range r.drivers {
		r.start(c)
	}
	r.cleanups.schedule(allDrivers, time.Now())
	r.mu.Unlock()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-r.wake:
		}
		if next := r.step(ctx, time.Now()); next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(time.Until(next))
		}
	}
	r.close()
	r.tasks.Wait()
	r.healthChanges.end()
	return nil
}

// close closes all connections, and lets no plugin register afterwards.
func (r *Registry) close() {
	r.mu.Lock()
	r.ended = true
	var all []*connection
	for driver, c := range r.drivers {
		all = append(all, c)
		delete(r.drivers, driver)
	}
	r.mu.Unlock()
	for _, c := range all {
		r.replace(c)
	}
}

// step does what is due and returns when it must be called again; zero if it need not.
func (r *Registry) step(ctx context.Context, now time.Time) (next time.Time) {
	var changed []string
	r.mu.Lock()
	for driver, c := range r.health {
		expired, at := c.expire(now)
		if expired {
			changed = append(changed, driver)
		}
		next = earliest(next, at)
		if len(c) == 0 {
			delete(r.health, driver)
		}
	}
	due, at := r.cleanups.due(now)
	next = earliest(next, at)
	r.mu.Unlock()
	for _, driver := range changed {
		r.healthChanges.change(driver)
	}
	for _, driver := range due {
		r.tasks.Go(func() { r.deleteSlices(ctx, driver) })
	}
	return next
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// deleteTimeout bounds one deletion of slices.
const deleteTimeout = 30 * time.Second

func (r *Registry) deleteSlices(ctx context.Context, driver string) {
	var err error
	if r.cfg.Slices != nil {
		ctx, cancel := context.WithTimeout(ctx, deleteTimeout)
		err = r.cfg.Slices.DeleteSlices(ctx, driver)
		cancel()
	}
	if err != nil && ctx.Err() == nil {
		r.cfg.Logger.Warn("Failed to delete the ResourceSlices of drivers that are not connected; will retry", "driver", driver, "err", err)
	}
	r.mu.Lock()
	r.cleanups.attempted(driver, time.Now(), err)
	r.mu.Unlock()
	r.hasten()
}

// hasten makes Run look at the schedule.
func (r *Registry) hasten() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// startConnection starts the goroutines of a connection. The caller must hold mu.
func (r *Registry) startConnection(ctx context.Context, c *connection) {
	ctx, c.stop = context.WithCancel(ctx)
	r.tasks.Go(func() { c.follow(ctx, func(connected bool) { r.connected(c, connected) }) })
	if c.services.health != "" {
		r.tasks.Go(func() { r.followHealth(ctx, c) })
	}
}

// connected schedules or cancels the deletion of slices.
func (r *Registry) connected(c *connection, connected bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.drivers[c.driver] != c {
		return // another plugin has registered
	}
	if connected {
		r.cleanups.cancel(c.driver)
		return
	}
	r.cleanups.schedule(c.driver, time.Now().Add(r.cfg.Grace))
	r.hasten()
}

// followHealth receives the health of devices until ctx is done or the plugin has no such
// service.
func (r *Registry) followHealth(ctx context.Context, c *connection) {
	wait := time.Duration(0)
	for {
		err := c.watchHealth(ctx, func(list []deviceReport) {
			wait = 0
			r.setHealth(c, list)
		})
		if ctx.Err() != nil {
			return
		}
		wait = min(max(2*wait, firstHealthRetry), lastHealthRetry)
		if status.Code(err) == codes.Unimplemented {
			r.cfg.Logger.Warn("DRA driver does not serve the health of devices, although it registered with it", "driver", c.driver, "err", err)
			return
		}
		r.cfg.Logger.Info("Lost the stream of device health; will retry", "driver", c.driver, "err", err, "retry", wait)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

func (r *Registry) setHealth(c *connection, list []deviceReport) {
	r.mu.Lock()
	changed := false
	if r.drivers[c.driver] == c {
		if r.health[c.driver] == nil {
			r.health[c.driver] = healthCache{}
		}
		changed = r.health[c.driver].update(time.Now(), list)
	}
	r.mu.Unlock()
	r.hasten()
	if changed {
		r.healthChanges.change(c.driver)
	}
}
