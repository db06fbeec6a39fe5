package dra

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PrepareResources prepares the claims of the pod: it must be called before a sandbox of
// the pod is created, and may be called again. Drivers are called concurrently, each once
// with all claims. A claim that a driver has prepared since the agent started is not
// prepared again.
//
// It returns an error if a claim does not exist or may not be used, and if a driver fails
// or does not respond in time. Claims may then be prepared for the pod, until
// UnprepareResources is called; the caller retries.
func (m *Manager) PrepareResources(ctx context.Context, pod *v1.Pod) error {
	claims, err := podClaims(pod)
	if err != nil {
		return fmt.Errorf("prepare dynamic resources: %w", err)
	}
	if len(claims) == 0 {
		return nil
	}
	began := time.Now()
	if err = m.prepare(ctx, pod, claims); err != nil {
		err = fmt.Errorf("prepare dynamic resources: %w", err)
	}
	m.cfg.Hooks.Operated(OperationInfo{Type: "PrepareResources", PodUID: pod.UID, Duration: time.Since(began), Err: err})
	return err
}

func (m *Manager) prepare(ctx context.Context, pod *v1.Pod, claims []podClaim) error {
	if pod.UID == "" {
		return fmt.Errorf("pod %s/%s has no UID", pod.Namespace, pod.Name)
	}
	var keys []claimKey
	for _, c := range claims {
		keys = append(keys, claimKey{pod.Namespace, c.name})
	}
	unlock, err := m.locks.lock(ctx, keys)
	if err != nil {
		return err
	}
	defer unlock()
	objects, err := m.checkedClaims(ctx, pod, claims)
	if err != nil {
		return err
	}
	calls, err := m.begin(pod.UID, objects)
	if err != nil {
		return err
	}
	err = m.callDrivers(ctx, calls, m.prepareWith)
	return errors.Join(err, m.save())
}

// checkedClaims reads the claims and checks that the pod may use them.
func (m *Manager) checkedClaims(ctx context.Context, pod *v1.Pod, claims []podClaim) ([]*resourceapi.ResourceClaim, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, m.cfg.CallTimeout, fmt.Errorf("no response within %v: %w", m.cfg.CallTimeout, context.DeadlineExceeded))
	defer cancel()
	var objects []*resourceapi.ResourceClaim
	for _, c := range claims {
		claim, err := m.cfg.Claims.GetClaim(ctx, pod.Namespace, c.name)
		if err != nil {
			return nil, fmt.Errorf("get ResourceClaim %s/%s: %w", pod.Namespace, c.name, err)
		}
		if claim == nil || claim.Namespace != pod.Namespace || claim.Name != c.name || claim.UID == "" {
			return nil, fmt.Errorf("get ResourceClaim %s/%s: another object was returned", pod.Namespace, c.name)
		}
		m.mu.Lock()
		s := m.ledger[claimKey{pod.Namespace, c.name}].clone()
		m.mu.Unlock()
		if err := s.conflict(claim); err != nil {
			return nil, err
		}
		if err := checkClaim(pod, c, claim, s.prepared(pod.UID)); err != nil {
			return nil, err
		}
		objects = append(objects, claim)
	}
	return objects, nil
}

// begin adds the pod to the claims, and returns the drivers to call after that has been
// saved: an agent that restarts must know all claims that may be prepared. If a driver is
// not registered, none is called. The caller must hold the locks of the claims.
func (m *Manager) begin(uid types.UID, claims []*resourceapi.ResourceClaim) (map[string][]ClaimRef, error) {
	m.mu.Lock()
	calls := map[string][]ClaimRef{}
	before := map[claimKey]*claimState{}
	for _, claim := range claims {
		ref := ClaimRef{claim.Namespace, claim.Name, claim.UID}
		s := m.ledger[keyOf(ref)]
		before[keyOf(ref)] = s.clone()
		for _, driver := range s.missingDrivers(claim) {
			calls[driver] = append(calls[driver], ref)
		}
	}
	m.mu.Unlock()
	for _, driver := range slices.Sorted(maps.Keys(calls)) {
		if !m.cfg.Plugins.Registered(driver) {
			return nil, notRegistered(driver)
		}
	}
	var skipped []string
	m.mu.Lock()
	for _, claim := range claims {
		skipped = append(skipped, m.ledger.begin(uid, claim)...)
	}
	delete(m.released, uid)
	m.version++
	m.mu.Unlock()
	if err := m.save(); err != nil {
		m.mu.Lock()
		for key, s := range before {
			m.ledger.restore(key, s)
		}
		m.version++
		m.mu.Unlock()
		return nil, err
	}
	m.skip("NodePrepareResources", skipped)
	return calls, nil
}

// skip calls Hooks.Skipped for each driver.
func (m *Manager) skip(method string, drivers []string) {
	for _, driver := range drivers {
		m.cfg.Hooks.Skipped(SkipInfo{driver, method})
	}
}

// callDrivers calls the drivers concurrently and returns their errors, in the order of the
// drivers' names.
func (m *Manager) callDrivers(ctx context.Context, calls map[string][]ClaimRef, call func(ctx context.Context, driver string, claims []ClaimRef) error) error {
	drivers := slices.Sorted(maps.Keys(calls))
	errs := make([]error, len(drivers))
	var wg sync.WaitGroup
	for i, driver := range drivers {
		wg.Go(func() {
			ctx, cancel := context.WithTimeoutCause(ctx, m.cfg.CallTimeout, fmt.Errorf("DRA driver %s has not responded within %v: %w", driver, m.cfg.CallTimeout, context.DeadlineExceeded))
			defer cancel()
			errs[i] = call(ctx, driver, calls[driver])
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// prepareWith calls one driver and stores its devices.
func (m *Manager) prepareWith(ctx context.Context, driver string, claims []ClaimRef) error {
	results, err := m.cfg.Plugins.Prepare(ctx, driver, claims)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.version++
	if err != nil {
		if errors.Is(err, ErrNotRegistered) { // since the check: it was not called
			for _, ref := range claims {
				m.ledger.setUncalled(ref, driver)
			}
			return notRegistered(driver)
		}
		for _, ref := range claims {
			m.ledger.setFailed(ref, driver)
		}
		return fmt.Errorf("NodePrepareResources of driver %s: %w", driver, causeOf(ctx, err))
	}
	var errs []error
	for _, ref := range claims {
		r, ok := results[ref.UID]
		m.ledger.setFailed(ref, driver)
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("NodePrepareResources of driver %s: no result for ResourceClaim %s (%s)", driver, ref, ref.UID))
		case r.Err != nil:
			errs = append(errs, fmt.Errorf("NodePrepareResources of driver %s failed for ResourceClaim %s: %w", driver, ref, r.Err))
		default:
			m.ledger.setPrepared(ref, driver, r.Devices)
		}
	}
	return errors.Join(errs...)
}

// causeOf returns why ctx is done, and err if it is not.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// UnprepareResources unprepares the claims that no other pod uses, and releases the
// others. No container of the pod may run. It has no effect for a pod without prepared
// claims, and does not read the claims: they may be deleted.
//
// It returns an error if a driver is not registered, fails, or does not respond in time.
// The pod then still uses the claim, and the caller retries.
func (m *Manager) UnprepareResources(ctx context.Context, uid types.UID) error {
	m.mu.Lock()
	keys := m.ledger.claimsOf(uid)
	m.mu.Unlock()
	if len(keys) == 0 {
		return nil
	}
	began := time.Now()
	err := m.unprepare(ctx, uid, keys)
	if err != nil {
		err = fmt.Errorf("unprepare dynamic resources: %w", err)
	}
	m.cfg.Hooks.Operated(OperationInfo{Type: "UnprepareResources", PodUID: uid, Duration: time.Since(began), Err: err})
	return err
}

func (m *Manager) unprepare(ctx context.Context, uid types.UID, keys []claimKey) error {
	unlock, err := m.locks.lock(ctx, keys)
	if err != nil {
		return err
	}
	defer unlock()
	calls := map[string][]ClaimRef{}
	var skipped []string
	m.mu.Lock()
	for _, key := range keys {
		s := m.ledger[key]
		drivers, skips := m.ledger.release(key, uid)
		for _, driver := range drivers {
			calls[driver] = append(calls[driver], s.ref)
		}
		skipped = append(skipped, skips...)
	}
	m.version++
	m.mu.Unlock()
	m.skip("NodeUnprepareResources", skipped)
	err = m.callDrivers(ctx, calls, m.unprepareWith)
	if saveErr := m.save(); saveErr != nil {
		// Nothing is lost: with the old checkpoint the claims are unprepared again, which
		// drivers must accept.
		m.cfg.Logger.Error("Failed to save checkpoint of resource claims; will save with the next change", "podUID", uid, "err", saveErr)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.ledger.claimsOf(uid)) == 0 {
		delete(m.released, uid)
	}
	return err
}

// unprepareWith calls one driver and removes it from the claims.
func (m *Manager) unprepareWith(ctx context.Context, driver string, claims []ClaimRef) error {
	results, err := m.cfg.Plugins.Unprepare(ctx, driver, claims)
	if errors.Is(err, ErrNotRegistered) {
		return notRegistered(driver)
	}
	if err != nil {
		return fmt.Errorf("NodeUnprepareResources of driver %s: %w", driver, causeOf(ctx, err))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.version++
	var errs []error
	for _, ref := range claims {
		failed, ok := results[ref.UID]
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("NodeUnprepareResources of driver %s: no result for ResourceClaim %s (%s)", driver, ref, ref.UID))
		case failed != nil:
			errs = append(errs, fmt.Errorf("NodeUnprepareResources of driver %s failed for ResourceClaim %s: %w", driver, ref, failed))
		default:
			m.ledger.setUnprepared(ref, driver)
		}
	}
	return errors.Join(errs...)
}

// save returns nil once the current state, or a later one, is on disk.
func (m *Manager) save() error {
	m.disk <- struct{}{}
	defer func() { <-m.disk }()
	m.mu.Lock()
	if m.saved == m.version {
		m.mu.Unlock()
		return nil
	}
	version, record := m.version, m.ledger.encode()
	m.mu.Unlock()
	if err := m.cfg.Store.Save(record); err != nil {
		return fmt.Errorf("save checkpoint: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.saved = version
	return nil
}
