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

// refresh updates the state of c, and notifies watchers and hooks of changes.
func (r *Runtime) refresh(c *container) {
	before, now, problems := r.inspect(c)
	for _, err := range problems {
		if e, ok := errors.AsType[*corruptError](err); ok {
			r.reportCorrupt(e.Path, err)
		} else {
			r.log.Error("Failed to inspect container; retrying at the next inspection", "containerID", c.rec.ID, "err", err)
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

// inspect updates the state of a container; nothing else does. It returns the
// last published state, the new state, and errors.
func (r *Runtime) inspect(c *container) (before, now runtimeapi.ContainerState, problems []error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	alive := true // if unknown, the next inspection decides
	if got, err := isAlive(r.dir.alive(c.rec.ID)); err == nil || errors.Is(err, fs.ErrNotExist) {
		alive = got
	}
	// After the check of the supervisor: if it had exited by then, its records are
	// complete.
	if c.exit == nil {
		problems = r.readLocked(c, alive)
	}
	if !alive && c.supervisor != nil {
		// Its descriptors are closed, so it has exited or is exiting.
		c.supervisor.Wait()
		c.supervisor = nil
	}
	before, now = c.published, c.stateLocked()
	c.published = now
	return before, now, problems
}

// readLocked reads the records of the supervisor. If the supervisor was killed,
// it kills the remaining processes of the container and records the exit.
func (r *Runtime) readLocked(c *container, alive bool) (problems []error) {
	id := c.rec.ID
	exit, err := readRecord[exitRecord](r.dir.exit(id), id)
	switch {
	case err == nil:
		c.exit = &exit
	case errors.Is(err, fs.ErrNotExist):
	case !isCorrupt(err):
		// For example too many open files: the state does not change.
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
			// A process was started, but its PID is unknown. It can be killed by
			// its environment.
			problems = append(problems, err)
			c.process = &processRecord{Process: identity{PID: unknownPID}}
		}
	}
	if c.exit != nil || alive || c.process == nil || c.starting && c.process.Process.PID == 0 {
		return problems
	}

	// A start was begun, and there is neither a supervisor nor an exit.
	if err := killGroup(c.process.Process); err != nil {
		problems = append(problems, err)
	}
	killMarked(id)
	c.exit = r.lost(c, "the supervisor of the process ended without recording an exit; its remaining processes have been killed")
	if err := r.dir.write(r.dir.container(id), r.dir.exit(id), c.exit); err != nil {
		problems = append(problems, fmt.Errorf("record exit: %w", err))
	}
	return problems
}

// unknownPID replaces a PID that could not be read. It is never signalled, because
// its identity has no start time.
const unknownPID = -1

// lost returns the exit record of a container whose exit was not observed. Reason
// and code are the kubelet's for a container that is missing.
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

// adopt makes this process reap a supervisor that is its child but was started by
// an earlier Runtime of the same program.
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

// letGo reaps a supervisor that has exited.
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
