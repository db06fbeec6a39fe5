package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/status"
)

// soonLaws are about how soon an agent does what is due: what it was told of must
// not wait for the next resync, whatever it was doing when it was told.
func soonLaws() []Invariant {
	return []Invariant{{
		Name: "ends-soon", Rules: "pw-14, pw-22",
		Says:  "while nothing goes wrong, an agent begins to kill a pod that runs within 10 seconds of its deletion, its removal or its eviction",
		begin: endsSoon,
	}, {
		Name: "exits-are-acted-on", Rules: "inv-12, lq-8",
		Says:  "while nothing goes wrong, a pod is synced or killed within 10 seconds of the notice of an exit",
		begin: exitsActedOn,
	}}
}

// soon is more than what an agent does may take, and less than a resync.
const soon = 10 * time.Second

// A dues is what agents have to do, by pod, since when and for what.
type dues map[types.UID]dueSince

type dueSince struct {
	at  time.Time
	why EntryKind
}

func (d dues) add(uid types.UID, at time.Time, why EntryKind) {
	if _, ok := d[uid]; !ok {
		d[uid] = dueSince{at, why}
	}
}

// late returns one that has waited for too long, and takes it away.
func (d dues) late(now time.Time) string {
	for _, uid := range slices.Sorted(maps.Keys(d)) {
		if due := d[uid]; now.Sub(due.at) > soon {
			delete(d, uid)
			return fmt.Sprintf("nothing came of what was due to pod %s for %v (%s)", uid, now.Sub(due.at), due.why)
		}
	}
	return ""
}

// killedBy reports whether that agent has begun to kill the pod in this life.
func (p *podTruth) killedBy(agent int) bool {
	return p.killing != nil && p.killing.agent == agent && p.killing.life == p.lives
}

func endsSoon(t *truth) func(*Entry) string {
	c := calm{hints: true}
	due := dues{}
	return func(e *Entry) string {
		if c.take(t, e) {
			clear(due)
		}
		switch e.Kind {
		case Deleting, Gone, Evicted:
			// A second life may wait for the end of the first.
			if p := t.pod(e.UID); c.now(t) && p.lives == 1 && len(p.running()) > 0 && !p.killedBy(c.agent) {
				due.add(e.UID, t.now, e.Kind)
			}
		case KillBegan, Wanted:
			delete(due, e.UID)
		case Exited:
			if len(t.pod(e.UID).running()) == 0 {
				delete(due, e.UID)
			}
		}
		return due.late(t.now)
	}
}

// exitsActedOn leaves out pods of which a sync may take long, since the next one
// waits for it: whose containers take their time to start or to stop.
func exitsActedOn(t *truth) func(*Entry) string {
	c := calm{hints: true}
	due, hung := dues{}, map[types.UID]bool{}
	return func(e *Entry) string {
		if c.take(t, e) {
			clear(due)
		}
		switch e.Kind {
		case StepTaken:
			if e.Step.Do == Hang {
				hung[e.UID] = true
				delete(due, e.UID)
			}
		case Noticed:
			p := t.pod(e.UID)
			if e.Event.Type == pleg.ContainerDied && c.now(t) && p.lives == 1 && p.synced == 1 && p.wanted != nil &&
				p.wanted.DeletionTimestamp == nil && p.evicted == 0 && !p.changed && !slow(p) && !hung[e.UID] && !stubborn(p) && !p.killedBy(c.agent) &&
				p.said != nil && !status.Terminal(p.said.Phase) {
				due.add(e.UID, t.now, e.Kind)
			}
		case SyncBegan, KillBegan, Gone, Deleting, Evicted, Changed:
			delete(due, e.UID)
		}
		return due.late(t.now)
	}
}

// stubborn reports whether a container of the pod takes time to stop.
func stubborn(p *podTruth) bool {
	for _, c := range slices.Concat(p.spec.Spec.InitContainers, p.spec.Spec.Containers) {
		if does, err := ParseBehaviour(c.Image); err != nil || does.Stubborn || does.StopDelay > 0 {
			return true
		}
	}
	return false
}
