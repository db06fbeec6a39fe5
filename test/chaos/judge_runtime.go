package chaos

import (
	"maps"
	"slices"
)

// runtime processes a complete list of the runtime.
func (j *judge) runtime(boxes []box, list []instance) {
	j.mu.Lock()
	defer j.mu.Unlock()
	running := map[[2]string]string{}
	for _, is := range list {
		j.instance(is)
		if !is.running {
			continue
		}
		key := [2]string{is.uid, is.container}
		other, twice := running[key]
		j.checkLocked(oneInstance, !twice, j.pods[is.uid].name, "the runtime runs %s twice: %s and %s", is.container, other, is.id)
		running[key] = is.id
	}
	ready := map[string]string{}
	for _, b := range boxes {
		l := j.historyLocked(b.uid)
		if l.name == "" {
			l.name = b.name
		}
		if b.ready {
			other, twice := ready[b.uid]
			j.checkLocked(oneSandbox, !twice, l.name, "sandboxes %s and %s are ready", other, b.id)
			ready[b.uid] = b.id
		}
	}
	// A running instance that is no longer listed has terminated as well.
	there := map[string]bool{}
	for _, is := range list {
		there[is.id] = true
	}
	for _, l := range j.pods {
		for _, is := range l.instances {
			if is.running && !there[is.id] {
				is.running = false
				j.endedLocked(l, is, "is gone")
			}
		}
	}
}

// instance processes an instance of the list.
func (j *judge) instance(is instance) {
	l := j.historyLocked(is.uid)
	known := l.instances[is.id]
	if known == nil {
		highest, others := l.highest[is.container]
		j.checkLocked(restartCountIncreases, !others || is.attempt > highest, l.name, "%s has attempt %d after attempt %d", is.container, is.attempt, highest)
		l.highest[is.container] = max(highest, is.attempt)
		known = &is
		l.instances[is.id] = known
	}
	if !l.terminalSince.IsZero() {
		j.checkLocked(terminalNeverRestarts, is.created.Before(l.terminalSince), l.name, "%s attempt %d was created after phase %s was reported", is.container, is.attempt, l.last.Status.Phase)
	}
	if is.running {
		known.running, known.ran = true, true
	}
	if is.exited && !known.exited {
		known.exited, known.code, known.finished, known.running = true, is.code, is.finished, false
		j.endedLocked(l, known, "has exited")
	}
}

// endedLocked records that an instance is not running any more. An instance that was never
// observed running may not have started: an interrupted start is not a disturbance.
func (j *judge) endedLocked(l *podHistory, is *instance, how string) {
	if l.shape == nil || !l.shape.longRunning || is.container == "init" || !is.ran {
		return
	}
	excused := l.touched || l.healing > 0 || l.deletionRequested || l.deleted || l.last == nil
	j.checkLocked(undisturbed, excused, l.name, "%s attempt %d %s with %d", is.container, is.attempt, how, is.code)
}

// exits returns the instances whose exit was not observed yet.
func (j *judge) exits(list []instance) (ids []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, is := range list {
		known := j.historyLocked(is.uid).instances[is.id]
		if is.exited && (known == nil || !known.exited) {
			ids = append(ids, is.id)
		}
	}
	return ids
}

// observedExit reports whether the exit of an instance was observed.
func (j *judge) observedExit(uid, id string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	known := j.historyLocked(uid).instances[id]
	return known != nil && known.exited
}

// processes checks the processes of all containers. It inspects each of them a second time:
// two that still exist then were running at the same time.
func (j *judge) processes(list []process) {
	type container struct{ uid, name string }
	found := map[container]map[string]process{}
	for _, p := range list {
		c := container{p.uid, p.container}
		if found[c] == nil {
			found[c] = map[string]process{}
		}
		if _, ok := found[c][p.instance]; !ok {
			found[c][p.instance] = p
		}
	}
	for c, instances := range found {
		maps.DeleteFunc(instances, func(_ string, p process) bool { return len(instances) > 1 && !p.alive() })
		var pids []int
		for _, p := range instances {
			pids = append(pids, p.pid)
		}
		slices.Sort(pids)
		j.check(oneInstance, len(instances) <= 1, j.podName(c.uid), "processes %v are of different instances of %s", pids, c.name)
	}
}
