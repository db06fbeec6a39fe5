package prober

import "time"

// A budget counts the running attempts and queues those that exceed the limits. The Manager's
// mu guards it.
type budget struct {
	most     int           // maximum number of running attempts
	commands int           // maximum number of running exec probes
	gap      time.Duration // between starts of exec probes

	runs, execs int
	after       time.Time // earliest start of the next exec probe

	plain, exec []*worker // waiting, the longest first
}

func newBudget(cfg Config) budget {
	b := budget{most: cfg.Limits.Parallel, commands: cfg.Limits.ExecParallel}
	if cfg.Limits.ExecPerSecond > 0 {
		b.gap = time.Duration(float64(time.Second) / cfg.Limits.ExecPerSecond)
	}
	return b
}

// queue appends w to its queue.
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

// take returns a worker that may run now and counts it as running, or returns nil.
func (b *budget) take(now time.Time) *worker {
	b.exec, b.plain = dropSettled(b.exec, true), dropSettled(b.plain, false)
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

// queued reports whether a worker is waiting.
func (b *budget) queued() bool { return len(b.plain)+len(b.exec) > 0 }

// dropSettled drops the workers at the front that are not waiting in this queue any more.
func dropSettled(queue []*worker, command bool) []*worker {
	for len(queue) > 0 && (queue[0].turn != waiting || queue[0].command != command) {
		queue[0] = nil
		queue = queue[1:]
	}
	return queue
}

// done counts the attempt of w as ended.
func (b *budget) done(w *worker) {
	w.turn = resting
	b.runs--
	if w.command {
		b.execs--
	}
}

// at returns when a waiting exec probe may start even if no other one ends before; zero if that
// is not limited by the rate.
func (b *budget) at() time.Time {
	if len(b.exec) == 0 || b.execs >= b.commands || b.runs >= b.most {
		return time.Time{}
	}
	return b.after
}
