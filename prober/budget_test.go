package prober_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/prober"
)

// With a limit of one parallel run, probes run in the order in which they became due,
// commands or not.
func TestTheLongestWaiterIsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		m, stop := n.manager(prober.Config{Limits: prober.Limits{Parallel: 1}})
		defer stop()
		var want []string
		for i, name := range []string{"exec-a", "plain-b", "exec-c", "plain-d", "exec-e"} {
			n.say(name, answer{Outcome: success.Outcome, takes: time.Second})
			uid := types.UID(name)
			n.starts(uid, name, name)
			m.Add(pod(uid, container(name, "R", func(p *v1.Probe) {
				p.TimeoutSeconds, p.PeriodSeconds = 5, 60
				if strings.HasPrefix(name, "exec") {
					p.ProbeHandler = v1.ProbeHandler{Exec: &v1.ExecAction{}}
				}
			})))
			want = append(want, fmt.Sprintf("%ds %s Readiness %s", i, name, name))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		assert.Equal(t, want, n.take(&n.runs))
	})
}

// Exec probes over the budget are late, and don't fail; others are not delayed.
func TestExecProbesHaveABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		m, stop := n.manager(prober.Config{Limits: prober.Limits{ExecParallel: 3}})
		defer stop()
		n.say("exec", answer{Outcome: success.Outcome, takes: time.Second})
		n.say("web", answer{Outcome: success.Outcome, takes: 100 * time.Millisecond})
		p := pod("u", container("web", "R", nil))
		n.starts("u", "web", "w")
		for i := range 12 {
			uid := types.UID(string(rune('a' + i)))
			n.starts(uid, "exec", "x-"+string(uid))
			m.Add(pod(uid, container("exec", "R", func(p *v1.Probe) { p.ProbeHandler = v1.ProbeHandler{Exec: &v1.ExecAction{}} })))
		}
		m.Add(p)
		time.Sleep(4500 * time.Millisecond)
		assert.Equal(t, 3, n.peak()-1, "three at a time, and one that is no command")
		for uid := range n.pods {
			assert.Contains(t, shown(m, pod(uid)), "readiness=success", "all had their turn")
		}
		assert.Empty(t, n.take(&n.events))
		assert.Equal(t, 9, n.deferred)
		var late time.Duration
		for _, r := range n.ran {
			late = max(late, r.Lag)
		}
		assert.Equal(t, 3*time.Second, late)
		assert.Contains(t, strings.Join(n.take(&n.runs), ","), "0s web Readiness w")
		time.Sleep(time.Hour)
		assert.LessOrEqual(t, n.peak(), 4)
	})
}

func TestExecProbesPerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		m, stop := n.manager(prober.Config{Limits: prober.Limits{ExecPerSecond: 2}})
		defer stop()
		for i := range 30 {
			uid := types.UID(string(rune('a' + i)))
			n.starts(uid, "exec", string(uid))
			m.Add(pod(uid, container("exec", "L", func(p *v1.Probe) {
				p.ProbeHandler, p.PeriodSeconds = v1.ProbeHandler{Exec: &v1.ExecAction{}}, 1
			})))
		}
		time.Sleep(100 * time.Second)
		runs := n.take(&n.runs)
		assert.InDelta(t, 200, len(runs), 2)
		per := make(map[string]int)
		for _, r := range runs {
			per[strings.Fields(r)[3]]++
		}
		for id, times := range per {
			assert.InDelta(t, 200.0/30, times, 1, "each has its share: %s", id)
		}
	})
}
