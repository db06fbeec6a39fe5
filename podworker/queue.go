package podworker

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A queue holds the due pods in the order in which they became due. A pod is in it at most
// once and is appended again after its call, so that no pod starves behind one that is always
// due.
type queue struct {
	pods []*worker
	head int
}

func (q *queue) push(p *worker) { q.pods = append(q.pods, p) }

// pop returns nil if the queue is empty.
func (q *queue) pop() *worker {
	if q.head == len(q.pods) {
		return nil
	}
	p := q.pods[q.head]
	q.pods[q.head] = nil
	if q.head++; q.head == len(q.pods) {
		q.pods, q.head = q.pods[:0], 0
	}
	return p
}

// A slot is one of Config.Parallel calls.
type slot struct {
	workers *Workers

	// Guarded by Workers.mu.
	timer *time.Timer // frees the slot of a slow call; nil: Config.Slow is negative
	freed bool
}

// take removes the first due pod from the queue, if a slot is free.
func (w *Workers) take(ctx context.Context) (due, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.takeLocked(ctx)
}

func (w *Workers) takeLocked(ctx context.Context) (due, bool) {
	for ctx.Err() == nil && (w.cfg.Parallel == 0 || w.busy < w.cfg.Parallel) {
		p := w.queue.pop()
		if p == nil {
			break
		}
		if d, ok := w.beginLocked(ctx, p); ok {
			d.slot = w.slotLocked()
			return d, true
		}
	}
	return due{}, false
}

// slotLocked takes a slot; nil if Parallel is zero.
func (w *Workers) slotLocked() *slot {
	if w.cfg.Parallel == 0 {
		return nil
	}
	w.busy++
	s := &slot{workers: w}
	if w.cfg.Slow > 0 {
		s.timer = time.AfterFunc(w.cfg.Slow, s.free)
	}
	return s
}

// free releases the slot when the call has returned or has become slow, whichever is first.
func (s *slot) free() {
	s.workers.mu.Lock()
	defer s.workers.mu.Unlock()
	s.freeLocked()
}

func (s *slot) freeLocked() {
	if s == nil || s.freed {
		return
	}
	s.freed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.workers.busy--
	signal(s.workers.ready)
}

// wakeLocked makes p due now.
func (w *Workers) wakeLocked(p *worker) {
	if p.timer != nil {
		p.timer.Stop()
	}
	if p.running {
		if !p.again {
			p.again, p.due = true, time.Now()
		}
		return
	}
	if p.queued {
		return
	}
	p.queued, p.next = true, time.Time{}
	if !p.again {
		p.due = time.Now()
	}
	w.queue.push(p)
	signal(w.ready)
}

// expired makes the pod due when its timer has expired.
func (w *Workers) expired(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, ok := w.pods[uid]; ok && !w.ended {
		w.wakeLocked(p)
	}
}
