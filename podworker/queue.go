package podworker

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A queue is the pods that are due, in the order in which they became due. Each
// is in it once at most, and goes to its end after a call, so that no pod is
// passed over for one that is always due.
type queue struct {
	uids []types.UID
	head int
}

func (q *queue) push(uid types.UID) { q.uids = append(q.uids, uid) }

func (q *queue) pop() (types.UID, bool) {
	if q.head == len(q.uids) {
		return "", false
	}
	uid := q.uids[q.head]
	q.uids[q.head] = ""
	if q.head++; q.head == len(q.uids) {
		q.uids, q.head = q.uids[:0], 0
	}
	return uid, true
}

// A slot is the place of one call among Config.Parallel.
type slot struct {
	workers *Workers

	// Guarded by Workers.mu.
	timer *time.Timer // frees the slot of a slow call; nil: none does
	freed bool
}

// pop takes the first due pod off the queue, if there is a place for its call.
func (w *Workers) pop() (types.UID, *slot, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fullLocked() {
		return "", nil, false
	}
	uid, ok := w.queue.pop()
	if !ok {
		return "", nil, false
	}
	w.busy++
	s := &slot{workers: w}
	if w.cfg.Parallel > 0 && w.cfg.Slow > 0 {
		s.timer = time.AfterFunc(w.cfg.Slow, s.free)
	}
	return uid, s, true
}

func (w *Workers) fullLocked() bool { return w.cfg.Parallel > 0 && w.busy >= w.cfg.Parallel }

// free gives the place to the next call: when the call has returned, or when it
// has had its time, whichever is first.
func (s *slot) free() {
	s.workers.mu.Lock()
	defer s.workers.mu.Unlock()
	if s.freed {
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
	w.queue.push(p.uid)
	signal(w.ready)
}

// expired makes uid due when its timer has run out.
func (w *Workers) expired(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, ok := w.pods[uid]; ok && !w.ended {
		w.wakeLocked(p)
	}
}
