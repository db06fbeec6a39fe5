package prober

import "time"

// A budget keeps count of what runs, and has those queue for whom there is no
// room. Nothing that is probed within its means is delayed; nothing that is put
// off counts as a failure (F-05). The Manager's mu guards it.
type budget struct {
	most     int // that run at a time
	commands int // of them exec probes
	gap      time.Duration

	runs, execs int
	after       time.Time // no exec probe begins before

	plain, exec []*worker // who waits, the longest first
}

func newBudget(cfg Config) budget {
	b := budget{most: cfg.Parallel, commands: cfg.Exec.Parallel}
	if cfg.Exec.PerSecond > 0 {
		b.gap = time.Duration(float64(time.Second) / cfg.Exec.PerSecond)
	}
	return b
}

// queue has w wait for its turn.
func (b *budget) queue(w *worker) {
	w.turn, w.command = waiting, w.probe.Exec != nil
	if w.command {
		b.exec = append(b.exec, w)
	} else {
		b.plain = append(b.plain, w)
	}
}

// full reports whether w would have to wait.
func (b *budget) full(w *worker, now time.Time) bool {
	return b.runs+len(b.plain)+len(b.exec) >= b.most ||
		w.probe.Exec != nil && (b.execs+len(b.exec) >= b.commands || now.Before(b.after))
}

// take returns who may run now, or nil. It counts as running then.
func (b *budget) take(now time.Time) *worker {
	b.exec, b.plain = settled(b.exec, true), settled(b.plain, false)
	if b.runs >= b.most {
		return nil
	}
	command := len(b.exec) > 0 && b.execs < b.commands && !now.Before(b.after)
	if command && len(b.plain) > 0 && b.plain[0].since.Before(b.exec[0].since) {
		command = false
	}
	var w *worker
	switch {
	case command:
		w, b.exec[0] = b.exec[0], nil
		b.exec = b.exec[1:]
		b.execs++
		b.after = now.Add(b.gap)
	case len(b.plain) > 0:
		w, b.plain[0] = b.plain[0], nil
		b.plain = b.plain[1:]
	default:
		return nil
	}
	b.runs++
	w.turn = running
	return w
}

// queued reports whether anybody waits.
func (b *budget) queued() bool { return len(b.plain)+len(b.exec) > 0 }

// settled drops those at the front who don't wait any more.
func settled(queue []*worker, command bool) []*worker {
	for len(queue) > 0 && (queue[0].turn != waiting || queue[0].command != command) {
		queue[0] = nil
		queue = queue[1:]
	}
	return queue
}

// done counts the run of w as ended.
func (b *budget) done(w *worker) {
	w.turn = resting
	b.runs--
	if w.command {
		b.execs--
	}
}

// at returns when an exec probe that waits may begin though nothing ends
// before; zero if that is not so.
func (b *budget) at() time.Time {
	if len(b.exec) == 0 || b.execs >= b.commands || b.runs >= b.most {
		return time.Time{}
	}
	return b.after
}
