package csi

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/kubeparts/kubeparts/runtime/podenv"
	"github.com/kubeparts/kubeparts/volume"
)

// checkPeriod is the time after which a changed update period of a CSIDriver is noticed.
const checkPeriod = time.Minute

// Run keeps the maximum number of volumes of drivers up to date until ctx is done, and returns nil. If
// the CSIDriver of a driver has a nodeAllocatableUpdatePeriodSeconds, NodeGetInfo is called at this
// period, and at once after a call that stages or publishes a volume has failed with ResourceExhausted,
// or AttachLimitExceeded has returned true; if the result has changed, Drivers.DriverRegistered is called (rule
// vol-84). Without Run, limits are those at the registration. It returns an error if it was called before.
func (p *Plugin) Run(ctx context.Context) error {
	if err := p.ran.Enter("csi: Plugin"); err != nil {
		return err
	}
	var updates sync.WaitGroup
	defer updates.Wait()
	states, done := map[string]limitState{}, make(chan limitState)
	for {
		due, next := p.dueLimits(states, time.Now())
		for _, s := range due {
			updates.Go(func() {
				s.update(ctx, p)
				select {
				case done <- s:
				case <-ctx.Done():
				}
			})
		}
		var later <-chan time.Time
		if !next.IsZero() {
			later = time.After(time.Until(next))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-p.wake:
		case <-later:
		case s := <-done:
			if now, registered := states[s.driver.Name]; registered {
				s.busy, s.exhausted = false, now.exhausted
				states[s.driver.Name] = s
			}
		}
	}
}

// A limitState is the schedule of the updates of one driver's limit.
type limitState struct {
	driver    Driver
	busy      bool // an update is in progress
	exhausted bool // it must be updated at once
	updated   time.Time
	next      time.Time
}

// wakeUp makes Run look for due updates.
func (p *Plugin) wakeUp() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// exhaust makes Run update the limit of a driver at once.
func (p *Plugin) exhaust(driver string) {
	p.mu.Lock()
	p.exhausted[driver] = true
	p.mu.Unlock()
	p.wakeUp()
}

// AttachLimitExceeded implements volume.Attacher: the status of the volume's VolumeAttachment has an
// attach error with the code ResourceExhausted. Drivers without an update period in their CSIDriver do
// not use the code (rule vol-85). If it returns true, Run updates the limit of the driver at once.
func (p *Plugin) AttachLimitExceeded(ctx context.Context, spec *volume.Spec) (bool, error) {
	if spec.PV == nil || spec.PV.Spec.CSI == nil || p.cfg.Drivers == nil {
		return false, nil
	}
	from := spec.PV.Spec.CSI
	about, err := p.about(ctx, from.Driver)
	if err != nil {
		return false, fmt.Errorf("csi: %w", err)
	}
	if updatePeriod(about) <= 0 {
		return false, nil
	}
	name := attachmentName(from.VolumeHandle, from.Driver, p.cfg.NodeName)
	attachment, err := p.cfg.Drivers.VolumeAttachment(ctx, name)
	switch {
	case err != nil && podenv.IsNotFound(err): // the controller has not created it
		return false, nil
	case err != nil:
		return false, fmt.Errorf("csi: get VolumeAttachment %s: %w", name, err)
	case !limitExceeded(&attachment.Status):
		return false, nil
	}
	p.exhaust(from.Driver)
	return true, nil
}

// limitExceeded reports whether the volume is not attached because of the limit of the node.
func limitExceeded(status *storagev1.VolumeAttachmentStatus) bool {
	failed := status.AttachError
	return !status.Attached && failed != nil && failed.ErrorCode != nil && codes.Code(*failed.ErrorCode) == codes.ResourceExhausted
}

// updatePeriod returns the period at which the limit of a driver is updated; zero means never.
func updatePeriod(about *storagev1.CSIDriverSpec) time.Duration {
	if about == nil || about.NodeAllocatableUpdatePeriodSeconds == nil {
		return 0
	}
	return time.Duration(*about.NodeAllocatableUpdatePeriodSeconds) * time.Second
}

// dueLimits returns the drivers whose limits must be checked now, which it marks as busy, and the time of
// the next one; zero if there is none.
func (p *Plugin) dueLimits(states map[string]limitState, now time.Time) (due []limitState, next time.Time) {
	p.mu.Lock()
	drivers, exhausted := maps.Clone(p.drivers), p.exhausted
	p.exhausted = map[string]bool{}
	p.mu.Unlock()
	maps.DeleteFunc(states, func(name string, s limitState) bool { _, ok := drivers[name]; return !ok && !s.busy })
	for name, d := range drivers {
		s := states[name]
		s.exhausted = s.exhausted || exhausted[name]
		switch {
		case s.busy: // its driver may not answer
		case s.exhausted || !s.next.After(now):
			s.driver, s.busy = d, true
			due = append(due, s)
			s.exhausted = false
		case next.IsZero() || s.next.Before(next):
			next = s.next
		}
		states[name] = s
	}
	return due, next
}

// update updates the limit of the driver if it is due, and sets the time of the next check.
func (s *limitState) update(ctx context.Context, p *Plugin) {
	about, err := p.about(ctx, s.driver.Name)
	period := updatePeriod(about)
	s.next = time.Now().Add(checkPeriod)
	if err != nil || period <= 0 {
		return
	}
	if s.updated.IsZero() { // it has just registered
		s.updated = time.Now()
	}
	if s.exhausted || !time.Now().Before(s.updated.Add(period)) {
		p.updateLimit(ctx, s.driver)
		s.updated = time.Now()
	}
	if at := s.updated.Add(period); at.Before(s.next) {
		s.next = at
	}
}

// updateLimit reads the limit of a driver, and reports it if it has changed.
func (p *Plugin) updateLimit(ctx context.Context, d Driver) {
	next := d
	err := p.call(ctx, d, func(ctx context.Context, node csipb.NodeClient) error { return next.read(ctx, node) })
	if err == nil && d.MaxVolumes == next.MaxVolumes && d.NodeID == next.NodeID && maps.Equal(d.Topology, next.Topology) {
		return
	}
	if err == nil {
		err = p.cfg.Drivers.DriverRegistered(ctx, next)
	}
	if err != nil {
		if ctx.Err() == nil {
			p.cfg.Logger.Warn("Failed to update the volume limit of a CSI driver; will retry", "driver", d.Name, "err", err)
		}
		return
	}
	p.mu.Lock()
	current, registered := p.drivers[d.Name]
	if registered && current.Endpoint == d.Endpoint {
		p.drivers[d.Name] = next
	}
	p.mu.Unlock()
	if !registered { // it has deregistered during the update
		p.cfg.Drivers.DriverDeregistered(ctx, d.Name)
	}
}
