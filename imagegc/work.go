package imagegc

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// work is the part of a pass that removes images.
type work struct {
	m        *Manager
	listed   time.Time // when the images and their users were
	report   *Report
	start    Space // before the first was removed
	measured bool  // free space is looked at, not added up
	now      Space // as last measured
	known    bool  // now is
	summed   uint64
}

// forAge removes what goes for its own sake (ig-10).
func (w *work) forAge(ctx context.Context) error {
	var errs []error
	for i := range w.report.Plan.Decisions {
		d := &w.report.Plan.Decisions[i]
		if d.Verdict != Aged && d.Verdict != Denied {
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
		return fmt.Errorf("imagegc: errors in the deletion of images that are too old: %w", errors.Join(errs...))
	}
	return nil
}

// forSpace removes candidates in their turn until there is space (ig-13 … ig-15).
func (w *work) forSpace(ctx context.Context, all bool) error {
	plan := &w.report.Plan
	if plan.Free == 0 {
		return nil
	}
	var errs []error
	for i := range plan.Decisions {
		d := &plan.Decisions[i]
		if d.Verdict != Candidate {
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
	short := &Shortage{Wanted: plan.Free, Freed: freed}
	w.m.event("FreeDiskSpaceFailed", short.message())
	short.Holders = w.m.holders(ctx, w.report)
	return short
}

// enough reports whether there is as much free space as there should be.
func (w *work) enough(plan *Plan) bool {
	if w.measured && w.known {
		return w.now.Available >= plan.Target
	}
	return w.summed >= plan.Free
}

// freed returns how much more is free than at the start.
func (w *work) freed() uint64 {
	if w.measured && w.known {
		return w.now.Available - min(w.now.Available, w.start.Available)
	}
	return w.summed
}

// remove removes the image of a decision, unless somebody has come to need it,
// and reports whether it did.
func (w *work) remove(ctx context.Context, d *Decision) (removed bool, err error) {
	m, r := w.m, &d.Record
	end, why := m.guard.begin(spellings(r), w.listed)
	if end == nil {
		m.cfg.Logger.Debug("image stays", "image", r.name(), "because", why)
		return false, nil
	}
	defer end()
	if why := m.stillWanted(r); why != "" {
		m.cfg.Logger.Debug("image stays", "image", r.name(), "because", why)
		return false, nil
	}
	before := w.start
	if w.known {
		before = w.now
	}
	if err := m.cfg.Store.RemoveImage(ctx, r.Image); err != nil {
		return false, fmt.Errorf("%s: %w", r.name(), err)
	}
	w.report.Removed = append(w.report.Removed, *r)
	w.summed += r.Image.Size
	info := RemovedInfo{Record: *r, Reason: reason(d.Verdict)}
	if w.measured {
		if now, err := m.cfg.Space(ctx); err == nil && now.Capacity > 0 {
			w.now, w.known = now, true
			info.Freed, info.Known = int64(now.Available)-int64(before.Available), true
		} else {
			// From here on sizes count, until it can be measured again.
			m.cfg.Logger.Warn("free space cannot be measured", "err", err)
			w.known = false
		}
	}
	m.cfg.Logger.Info("image removed", "image", r.name(), "reason", info.Reason, "why", d.Why, "freed", info.Freed)
	if m.cfg.Hooks.Removed != nil {
		m.cfg.Hooks.Removed(info)
	}
	w.report.Freed = w.freed()
	return true, nil
}

// reason is the word of the kubelet's metric (ig-17).
func reason(v Verdict) string {
	switch v {
	case Aged:
		return "age"
	case Denied:
		return "denied"
	default:
		return "space"
	}
}
