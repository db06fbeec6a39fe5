package imagegc

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A remover removes the images of a plan.
type remover struct {
	m          *Manager
	listed     time.Time // when the images and their users were listed
	report     *Report
	start      Space  // before the first removal
	measurable bool   // the space is measured after each removal; otherwise sizes are added up
	now        Space  // as last measured
	measured   bool   // now is valid
	sizes      uint64 // total size of the removed images
}

// removeUnconditional removes aged and denied images.
func (w *remover) removeUnconditional(ctx context.Context) error {
	var errs []error
	for i := range w.report.Plan.Decisions {
		d := &w.report.Plan.Decisions[i]
		if d.Class != ClassAged && d.Class != ClassDenied {
			break
		}
		if _, err := w.remove(ctx, d); err != nil {
			errs = append(errs, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("imagegc: remove old images: %w", errors.Join(errs...))
	}
	return nil
}

// removeForSpace removes candidates in rank order until enough space is available.
func (w *remover) removeForSpace(ctx context.Context, all bool) error {
	plan := &w.report.Plan
	if plan.Free == 0 {
		return nil
	}
	var errs []error
	for i := range plan.Decisions {
		d := &plan.Decisions[i]
		if d.Class != ClassCandidate {
			continue
		}
		if !all && w.enough(plan) {
			break
		}
		if _, err := w.remove(ctx, d); err != nil {
			errs = append(errs, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	freed := w.freed()
	w.report.Freed = freed
	switch {
	case len(errs) > 0:
		return fmt.Errorf("imagegc: wanted to free %d bytes, but freed %d bytes space with errors in image deletion: %w", plan.Free, freed, errors.Join(errs...))
	case all || w.enough(plan):
		return nil
	}
	shortage := &ShortageError{Required: plan.Free, Freed: freed}
	w.m.event("FreeDiskSpaceFailed", shortage.message())
	shortage.Consumers = w.m.consumers(ctx, w.report)
	return shortage
}

// enough reports whether enough space is available.
func (w *remover) enough(plan *Plan) bool {
	if w.measurable && w.measured {
		return w.now.Available >= plan.Target
	}
	return w.sizes >= plan.Free
}

// freed returns the number of bytes freed since the start.
func (w *remover) freed() uint64 {
	if w.measurable && w.measured {
		return w.now.Available - min(w.now.Available, w.start.Available)
	}
	return w.sizes
}

// remove removes the image of a decision, unless it has come into use, and reports whether it
// did.
func (w *remover) remove(ctx context.Context, d *Decision) (removed bool, err error) {
	m, r := w.m, &d.Record
	end, reason := m.holds.beginRemoval(references(r), w.listed)
	if end == nil {
		m.cfg.Logger.Debug("Kept image that came into use", "image", r.name(), "reason", reason)
		return false, nil
	}
	defer end()
	if reason := m.requiredBy(r); reason != "" {
		m.cfg.Logger.Debug("Kept image that came into use", "image", r.name(), "reason", reason)
		return false, nil
	}
	before := w.start
	if w.measured {
		before = w.now
	}
	if err := m.cfg.Store.RemoveImage(ctx, r.Image); err != nil {
		return false, fmt.Errorf("%s: %w", r.name(), err)
	}
	w.report.Removed = append(w.report.Removed, *r)
	w.sizes += r.Image.Size
	info := RemovedInfo{Record: *r, Reason: metricReason(d.Class)}
	if w.measurable {
		if now, err := m.cfg.Space(ctx); err == nil && now.Capacity > 0 {
			w.now, w.measured = now, true
			info.Freed, info.Measured = int64(now.Available)-int64(before.Available), true
		} else {
			// Until the next measurement succeeds, sizes are added up.
			m.cfg.Logger.Warn("Failed to measure free space; adding up image sizes instead", "err", err)
			w.measured = false
		}
	}
	m.cfg.Logger.Info("Removed image", "image", r.name(), "reason", info.Reason, "details", d.Reason, "freedBytes", info.Freed)
	if m.cfg.Hooks.Removed != nil {
		m.cfg.Hooks.Removed(info)
	}
	w.report.Freed = w.freed()
	return true, nil
}

// metricReason returns the label of the kubelet's metric; "denied" is an addition.
func metricReason(class Class) string {
	switch class {
	case ClassAged:
		return "age"
	case ClassDenied:
		return "denied"
	default:
		return "space"
	}
}
