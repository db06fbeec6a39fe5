package imagegc

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/runtime"
)

// ErrNotSynced is in the chain of the error of a pass until Config.Pods is synced. Such a pass
// removes nothing.
var ErrNotSynced = errors.New("not all pods of the node are known yet")

// A Report describes a pass.
type Report struct {
	// Plan of the pass.
	Plan Plan

	// Removed images, in order.
	Removed []Record

	// Freed is the increase of the available space in bytes, as measured, which includes
	// concurrent changes; the sum of the images' sizes if it could not be measured.
	Freed uint64
}

// A ShortageError is the error of a pass that could not free enough space although all
// candidates were removed.
type ShortageError struct {
	// Required is the number of bytes to free, Freed that of the removed images.
	Required, Freed uint64

	// Consumers of the space, the largest first; incomplete if some could not be measured.
	Consumers []Consumer
}

// message is the message of the kubelet's event.
func (e *ShortageError) message() string {
	return fmt.Sprintf("Failed to garbage collect required amount of images. Attempted to free %d bytes, but only found %d bytes eligible to free.", e.Required, e.Freed)
}

// Error returns the kubelet's message and the consumers of the space.
func (e *ShortageError) Error() string {
	if len(e.Consumers) == 0 {
		return "imagegc: " + e.message()
	}
	return "imagegc: " + e.message() + " Space is used by " + join(e.Consumers) + "."
}

// Collect makes one pass: it lists the images and their users, removes aged and denied images
// and, if the file system is too full, candidates until it is not. It blocks while another
// pass is in progress. The failure of one part does not prevent the others; the error joins
// theirs. It returns [ErrNotSynced] until Config.Pods is synced, and a [*ShortageError] if all
// candidates were removed and the file system is still too full.
func (m *Manager) Collect(ctx context.Context) (Report, error) { return m.pass(ctx, false) }

// DeleteUnused makes a pass that removes all candidates regardless of the thresholds, and
// returns the number of freed bytes. Eviction managers call it before they evict a pod.
func (m *Manager) DeleteUnused(ctx context.Context) (freed uint64, err error) {
	report, err := m.pass(ctx, true)
	return report.Freed, err
}

// DryRun returns the plan that a pass would carry out now. It removes no image.
func (m *Manager) DryRun(ctx context.Context) (Plan, error) {
	if err := m.begin(ctx); err != nil {
		return Plan{}, err
	}
	defer m.end()
	now := time.Now()
	if _, err := m.detect(ctx, now); err != nil {
		return Plan{}, err
	}
	space, err := m.space(ctx)
	if err != nil {
		return Plan{}, err
	}
	return m.inputs(space, now, false).Plan()
}

// begin waits until no pass is in progress.
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
	if m.cfg.Hooks.Trace != nil {
		traced, end := m.cfg.Hooks.Trace(ctx)
		ctx = traced
		defer func() { end(err) }()
	}
	began := time.Now()
	defer func() {
		if m.cfg.Hooks.Passed != nil {
			m.cfg.Hooks.Passed(PassInfo{Report: report, Err: err, Duration: time.Since(began)})
		}
	}()
	synced, err := m.detect(ctx, began)
	if err != nil {
		return report, err
	}
	if !synced {
		return report, fmt.Errorf("imagegc: %w", ErrNotSynced)
	}
	space, spaceErr := m.space(ctx)
	report.Plan, err = m.inputs(space, began, all).Plan()
	if err != nil {
		return report, err
	}
	w := &remover{m: m, listed: began, report: &report, start: space, measurable: space.Capacity > 0}
	defer func() { m.dropRecords(report.Removed) }()
	ageErr := w.removeUnconditional(ctx)
	if all || spaceErr == nil { // with all, image sizes count if the space is unknown
		spaceErr = w.removeForSpace(ctx, all)
	}
	return report, errors.Join(ageErr, spaceErr)
}

func (m *Manager) inputs(space Space, now time.Time, all bool) Inputs {
	return Inputs{
		Records: m.records, Space: space, Policy: m.cfg.Policy, Since: m.since,
		All: all, Now: now,
	}
}

// detect updates the records. synced is the result of Config.Pods.
func (m *Manager) detect(ctx context.Context, now time.Time) (synced bool, err error) {
	m.load(now)
	// A hold that is released after this has a container in the list of uses.
	pods, synced := m.cfg.Pods()
	uses, names := usesOf(pods), m.holds.names()
	for _, name := range names {
		uses = append(uses, runtime.ImageUse{Name: name})
	}
	images, err := m.cfg.Store.Images(ctx)
	if err != nil {
		return synced, fmt.Errorf("imagegc: list images: %w", err)
	}
	m.setImages(images, now)
	used, err := m.cfg.Store.ImageUses(ctx)
	if err != nil {
		return synced, fmt.Errorf("imagegc: list users of images: %w", err)
	}
	m.records = detect(m.records, images, append(used, uses...), now)
	for i := range m.records {
		r := &m.records[i]
		names := references(r)
		if r.FirstDetected.Equal(now) && r.PulledBy == "" {
			r.PulledBy = m.holds.pulledBy(names)
		}
		// A pod that started and terminated between two lists is in none of them. Its
		// image was detected and used when its hold was released.
		if at := m.holds.releasedAt(names); !at.IsZero() && at.Before(now) {
			r.LastUsed = later(r.LastUsed, at)
			if r.FirstDetected.Equal(now) {
				r.FirstDetected = at
			}
		}
	}
	m.holds.forget(now)
	m.save()
	m.forget(images, now)
	return synced, nil
}

// forget deletes what the store has of other images.
func (m *Manager) forget(images []runtime.Image, before time.Time) {
	store, ok := compose.As[Forgetter](m.cfg.Store)
	if !ok {
		return
	}
	present := make([]string, len(images))
	for i := range images {
		present[i] = images[i].ID
	}
	if err := store.ForgetImages(present, before); err != nil {
		m.cfg.Logger.Warn("Failed to delete records of removed images", "err", err)
	}
}

// usesOf returns the images of pods as uses.
func usesOf(pods []*v1.Pod) (uses []runtime.ImageUse) {
	for _, pod := range pods {
		for _, image := range PodImages(pod) {
			uses = append(uses, runtime.ImageUse{Name: image, Namespace: pod.Namespace, Pod: pod.Name})
		}
	}
	return uses
}

// space measures the file system. A capacity of zero is an error and an event (rule ig-11).
func (m *Manager) space(ctx context.Context) (Space, error) {
	if m.cfg.Space == nil {
		return Space{}, nil
	}
	space, err := m.cfg.Space(ctx)
	if err != nil {
		return Space{}, fmt.Errorf("imagegc: measure image file system: %w", err)
	}
	if space.Capacity == 0 {
		m.event("InvalidDiskCapacity", "invalid capacity 0 on image filesystem")
		return Space{}, errors.New("imagegc: invalid capacity 0 on image filesystem")
	}
	space.Available = min(space.Available, space.Capacity)
	return space, nil
}

func (m *Manager) dropRecords(removed []Record) {
	if len(removed) == 0 {
		return
	}
	dropped := make(map[string]bool, len(removed))
	for i := range removed {
		dropped[removed[i].key()] = true
	}
	kept := m.records[:0:0]
	for _, r := range m.records {
		if !dropped[r.key()] {
			kept = append(kept, r)
		}
	}
	m.records = kept
	m.save()
}

// requiredBy returns the pod that uses the image, empty if none does. Pods may have been added
// since the plan was made.
func (m *Manager) requiredBy(r *Record) string {
	one := index{}
	for _, s := range references(r) {
		one[s] = []int{0}
	}
	pods, _ := m.cfg.Pods()
	for _, pod := range pods {
		for _, image := range PodImages(pod) {
			if len(one.find(image)) > 0 {
				return "used by pod " + pod.Namespace + "/" + pod.Name
			}
		}
	}
	return ""
}
