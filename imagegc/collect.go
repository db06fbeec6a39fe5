package imagegc

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// ErrNotReady says that no image may go yet (Config.Ready).
var ErrNotReady = errors.New("not all pods of the node are known yet")

// A Report tells what a pass did.
type Report struct {
	// Plan that it went by.
	Plan Plan

	// Removed images, in order.
	Removed []Record

	// Freed is by how much the free space has grown, as measured: others may have
	// taken from it, or added to it, meanwhile. With Config.SumOfSizes it is the sum
	// of the sizes.
	Freed uint64
}

// A Shortage is the error of a pass that could not free what it should have, though
// all went well: what there is to remove has been removed (ig-14).
type Shortage struct {
	Wanted, Freed uint64

	// Holders have the rest, the largest first, as far as that is known (F-32).
	Holders []Holder
}

func (e *Shortage) message() string {
	return fmt.Sprintf("Failed to garbage collect required amount of images. Attempted to free %d bytes, but only found %d bytes eligible to free.", e.Wanted, e.Freed)
}

func (e *Shortage) Error() string {
	if len(e.Holders) == 0 {
		return "imagegc: " + e.message()
	}
	return "imagegc: " + e.message() + " The space is held by " + sentence(e.Holders) + "."
}

// Collect makes one pass: it looks which images there are and who uses them, removes
// those that go for their age, and, if the file system is fuller than it should be,
// others until it is not. It waits for a pass that is under way. The failure of one
// part does not keep the next from being done (F-33); the error joins them.
func (m *Manager) Collect(ctx context.Context) (Report, error) { return m.pass(ctx, false) }

// DeleteUnused makes a pass that removes every image that may go, whatever the
// thresholds say, and returns how many bytes that has freed: what an eviction does
// before it ends a pod (ig-16).
func (m *Manager) DeleteUnused(ctx context.Context) (freed uint64, err error) {
	report, err := m.pass(ctx, true)
	return report.Freed, err
}

// DryRun returns what a pass would do now, and why (F-29). It removes nothing.
func (m *Manager) DryRun(ctx context.Context) (Plan, error) {
	if err := m.begin(ctx); err != nil {
		return Plan{}, err
	}
	defer m.end()
	now := time.Now()
	if err := m.detect(ctx, now); err != nil {
		return Plan{}, err
	}
	space, err := m.space(ctx)
	if err != nil {
		return Plan{}, err
	}
	return MakePlan(m.input(space, now, false))
}

// begin takes the turn.
func (m *Manager) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case m.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *Manager) end() { <-m.turn }

func (m *Manager) pass(ctx context.Context, all bool) (report Report, err error) {
	if err := m.begin(ctx); err != nil {
		return report, err
	}
	defer m.end()
	began := time.Now()
	defer func() {
		if m.cfg.Hooks.Passed != nil {
			m.cfg.Hooks.Passed(PassedInfo{Report: report, Err: err, Duration: time.Since(began)})
		}
	}()
	if err := m.detect(ctx, began); err != nil {
		return report, err
	}
	if !m.cfg.Ready() {
		return report, fmt.Errorf("imagegc: %w", ErrNotReady)
	}
	space, spaceErr := m.space(ctx)
	report.Plan, err = MakePlan(m.input(space, began, all))
	if err != nil {
		return report, err
	}
	w := &work{m: m, listed: began, report: &report, start: space, measured: space.Capacity > 0 && !m.cfg.SumOfSizes}
	defer func() { m.drop(report.Removed) }()
	ageErr := w.forAge(ctx)
	if all || spaceErr == nil { // of all, sizes count where nothing can be measured
		spaceErr = w.forSpace(ctx, all)
	}
	return report, errors.Join(ageErr, spaceErr)
}

// input is what a plan is made from.
func (m *Manager) input(space Space, now time.Time, all bool) Input {
	return Input{
		Records: m.records, Space: space, Policy: m.cfg.Policy, Since: m.since,
		All: all, Rank: m.cfg.Rank, Now: now,
	}
}

// detect brings the records up to date.
func (m *Manager) detect(ctx context.Context, now time.Time) error {
	m.load(now)
	// Who holds an image before the list of uses is made is in the one or the other.
	uses, names := m.wanted(), m.guard.names()
	for _, name := range names {
		uses = append(uses, runtime.ImageUse{Name: name})
	}
	images, err := m.cfg.Store.Images(ctx)
	if err != nil {
		return fmt.Errorf("imagegc: list images: %w", err)
	}
	m.note(images, now)
	used, err := m.cfg.Store.ImageUses(ctx)
	if err != nil {
		return fmt.Errorf("imagegc: list who uses images: %w", err)
	}
	m.records = Detect(m.records, images, append(used, uses...), now)
	for i := range m.records {
		r := &m.records[i]
		names := spellings(r)
		if r.FirstDetected.Equal(now) && r.PulledBy == "" {
			r.PulledBy = m.guard.pulledBy(names)
		}
		// A pod that came and went between two lists is not in any of them. Its image
		// is here since then, not since now, when its space may be needed.
		if at := m.guard.letGoAt(names); !at.IsZero() && at.Before(now) {
			r.LastUsed = later(r.LastUsed, at)
			if r.FirstDetected.Equal(now) {
				r.FirstDetected = at
			}
		}
	}
	m.guard.forget(now)
	m.save()
	if m.cfg.Hooks.Detected != nil {
		present := make([]string, len(images))
		for i := range images {
			present[i] = images[i].ID
		}
		m.cfg.Hooks.Detected(present, now)
	}
	return nil
}

// wanted returns what the pods of the node need, as uses.
func (m *Manager) wanted() (uses []runtime.ImageUse) {
	for _, pod := range m.cfg.Pods() {
		for _, image := range PodImages(pod) {
			uses = append(uses, runtime.ImageUse{Name: image, Namespace: pod.Namespace, Pod: pod.Name})
		}
	}
	return uses
}

// space returns how full the file system is. That its capacity is 0 is an error,
// and an event (ig-11).
func (m *Manager) space(ctx context.Context) (Space, error) {
	if m.cfg.Space == nil {
		return Space{}, nil
	}
	space, err := m.cfg.Space(ctx)
	if err != nil {
		return Space{}, fmt.Errorf("imagegc: how full the image file system is: %w", err)
	}
	if space.Capacity == 0 {
		m.event("InvalidDiskCapacity", "invalid capacity 0 on image filesystem")
		return Space{}, errors.New("imagegc: invalid capacity 0 on image filesystem")
	}
	space.Available = min(space.Available, space.Capacity)
	return space, nil
}

// drop forgets the records of what was removed.
func (m *Manager) drop(removed []Record) {
	if len(removed) == 0 {
		return
	}
	gone := make(map[string]bool, len(removed))
	for i := range removed {
		gone[removed[i].key()] = true
	}
	kept := m.records[:0:0]
	for _, r := range m.records {
		if !gone[r.key()] {
			kept = append(kept, r)
		}
	}
	m.records = kept
	m.save()
}

// stillWanted returns who wants the image by now, "" if nobody does: pods come
// while others are being judged.
func (m *Manager) stillWanted(r *Record) string {
	one := index{}
	for _, s := range spellings(r) {
		one[s] = []int{0}
	}
	for _, pod := range m.cfg.Pods() {
		for _, image := range PodImages(pod) {
			if len(one.find(image)) > 0 {
				return wantedBy(pod)
			}
		}
	}
	return ""
}

func wantedBy(pod *v1.Pod) string { return "pod " + pod.Namespace + "/" + pod.Name + " wants it" }
