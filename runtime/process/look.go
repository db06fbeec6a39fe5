package process

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// look brings what is known of c up to date, and tells watchers and hooks what
// has changed.
func (r *Runtime) look(c *container) {
	before, now, problems := r.inspect(c)
	for _, err := range problems {
		if e, ok := errors.AsType[*CorruptError](err); ok {
			r.reportCorrupt(e.Path, err)
		} else {
			r.log.Error("look at container", "container", c.rec.ID, "err", err)
		}
	}
	if before == now {
		return
	}
	c.mu.Lock()
	exit := c.exit
	c.mu.Unlock()
	if before == runtimeapi.ContainerState_CONTAINER_CREATED && (exit == nil || exit.Reason != reasonStartError) {
		r.publish(c.rec.SandboxID, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT, c.rec.ID)
	}
	if exit != nil {
		r.publish(c.rec.SandboxID, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT, c.rec.ID)
		if r.hooks.Exited != nil {
			r.hooks.Exited(ExitInfo{ContainerID: c.rec.ID, Code: exit.Code, Signal: exit.Signal, Reason: exit.Reason, Lost: exit.Reason == reasonLost})
		}
	}
}

// inspect is the one place where a container changes its state. It returns the
// state that was last told, the one to tell now, and what went wrong.
func (r *Runtime) inspect(c *container) (before, now runtimeapi.ContainerState, problems []error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	alive := true // when in doubt: nobody is hurt by looking again
	if got, err := isAlive(r.dir.alive(c.rec.ID)); err == nil || errors.Is(err, fs.ErrNotExist) {
		alive = got
	}
	// After the look at the supervisor: if it had ended by then, what it has
	// not written by now it never will.
	if c.exit == nil {
		problems = r.readLocked(c, alive)
	}
	if !alive && c.supervisor != nil {
		// Its descriptors are closed, so it has ended or does so now.
		c.supervisor.Wait()
		c.supervisor = nil
	}
	before, now = c.told, c.stateLocked()
	c.told = now
	return before, now, problems
}

// readLocked reads what the supervisor has written.
//
// A container whose supervisor was killed is settled here: what is left of it
// is killed, and an exit is written down that says so.
func (r *Runtime) readLocked(c *container, alive bool) (problems []error) {
	id := c.rec.ID
	exit, err := readRecord[exitRecord](r.dir.exit(id), id)
	switch {
	case err == nil:
		c.exit = &exit
	case errors.Is(err, fs.ErrNotExist):
	case !isCorrupt(err):
		// No more descriptors, say: nothing is known, so nothing changes.
		return []error{err}
	default:
		problems = append(problems, err)
		c.exit = r.lost(c, "the record of the exit cannot be read: "+err.Error())
		if info, err := os.Stat(r.dir.exit(id)); err == nil {
			c.exit.FinishedAt = info.ModTime().UnixNano() // the same after each restart
		}
	}
	if c.process == nil || c.process.Process.PID == 0 {
		proc, err := readRecord[processRecord](r.dir.processFile(id), id)
		switch {
		case err == nil:
			c.process = &proc
			if c.exit != nil && c.exit.Reason == reasonLost {
				c.exit.StartedAt = cmp.Or(proc.StartedAt, c.exit.StartedAt)
			}
		case errors.Is(err, fs.ErrNotExist):
		case !isCorrupt(err):
			return append(problems, err)
		default:
			// That there is one says that a process was started; which, is
			// not known. Killed it can be by its mark.
			problems = append(problems, err)
			c.process = &processRecord{Process: identity{PID: unknownPID}}
		}
	}
	if c.exit != nil || alive || c.process == nil || c.starting && c.process.Process.PID == 0 {
		return problems
	}

	// A start was begun and there is no supervisor and no exit.
	if err := killGroup(c.process.Process); err != nil {
		problems = append(problems, err)
	}
	killMarked(id)
	c.exit = r.lost(c, "the supervisor of the process ended without recording an exit; what was left of the container has been killed")
	if err := r.dir.write(r.dir.container(id), r.dir.exit(id), c.exit); err != nil {
		problems = append(problems, fmt.Errorf("record exit: %w", err))
	}
	return problems
}

// unknownPID stands in for one that could not be read. It is never signalled:
// its identity has no start.
const unknownPID = -1

// lost is the exit of a container that nobody saw exit. Reason and code are
// the kubelet's for a container it cannot find any more (st-5).
func (r *Runtime) lost(c *container, message string) *exitRecord {
	now := time.Now().UnixNano()
	exit := &exitRecord{
		Version: formatVersion, ID: c.rec.ID, Code: codeLost, Reason: reasonLost, Message: message,
		StartedAt: now, FinishedAt: now,
	}
	if c.process != nil && c.process.StartedAt != 0 {
		exit.StartedAt = c.process.StartedAt
	}
	return exit
}

// adopt takes over the duty to reap a supervisor that is a child of this
// process: an earlier Runtime of the same program started it.
func (c *container) adopt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil || c.exit != nil || c.process.Supervisor.PID <= 1 || parentOf(c.process.Supervisor.PID) != os.Getpid() {
		return
	}
	if p, err := os.FindProcess(c.process.Supervisor.PID); err == nil {
		c.supervisor = p
	}
}

// letGo reaps a supervisor that has ended and leaves one that has not.
func (c *container) letGo(alive string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.supervisor == nil {
		return
	}
	if lives, err := isAlive(alive); err == nil && !lives {
		c.supervisor.Wait()
	} else {
		c.supervisor.Release()
	}
	c.supervisor = nil
}
