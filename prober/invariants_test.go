package prober_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
)

// A court checks the invariants of a Manager while pods and containers change at random.
type court struct {
	*node
	seed uint64

	mu      sync.Mutex
	random  *rand.Rand
	running map[string]string // instance by "uid/container"
	flying  map[string]bool   // by "uid/container/Kind"
	failed  map[string]bool   // "id Kind" that may not be run any more
	sum     int
}

func (c *court) draw(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.random.IntN(n)
}

// Probe implements prober.Handler: it is fast, slow or hangs, with a random outcome.
func (c *court) Probe(ctx context.Context, t prober.Target) (prober.Outcome, error) {
	place := string(t.Pod.UID) + "/" + t.Container.Name
	key := place + "/" + t.Kind.String()
	c.mu.Lock()
	c.sum++
	assert.False(c.t, c.flying[key], "seed %d: %s is run twice at a time", c.seed, key)
	assert.Equal(c.t, c.running[place], t.ContainerID, "seed %d: %s is run on an instance that is gone", c.seed, key)
	assert.False(c.t, c.failed[t.ContainerID+" "+t.Kind.String()], "seed %d: %s is on hold, and run", c.seed, key)
	c.flying[key] = true
	assert.LessOrEqual(c.t, len(c.flying), 5, "seed %d", c.seed)
	takes, outcome := time.Duration(c.random.IntN(1500))*time.Millisecond, c.random.IntN(5)
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.flying, key)
	}()
	select {
	case <-ctx.Done():
		return prober.Outcome{}, ctx.Err()
	case <-time.After(takes):
	}
	switch outcome {
	case 0:
		return prober.Outcome{}, fmt.Errorf("no idea")
	case 1, 2:
		return failure.Outcome, nil
	default:
		return success.Outcome, nil
	}
}

// changed records the consequences of a result.
func (c *court) changed(change prober.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if change.Kind == prober.Liveness && change.Result == runtime.ProbeFailure ||
		change.Kind == prober.Startup && change.Result != runtime.ProbeUnknown {
		c.failed[change.ContainerID+" "+change.Kind.String()] = true
	}
}

// forget drops the final results of a pod.
func (c *court) forget(uid types.UID) {
	synctest.Wait() // until the results have been delivered
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range 2 {
		for _, k := range all {
			delete(c.failed, c.running[fmt.Sprint(uid, "/c", i)]+" "+k.String())
		}
	}
}

func TestInvariantsHoldUnderRandomChanges(t *testing.T) {
	sum := 0
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			c := &court{
				node: newNode(t), seed: seed, random: rand.New(rand.NewPCG(seed, 11)),
				running: make(map[string]string), flying: make(map[string]bool), failed: make(map[string]bool),
			}
			m, err := prober.New(prober.Config{
				Handlers: prober.Handlers{Exec: c, TCPSocket: c}, Status: c.status, Changed: c.changed,
				Limits:   prober.Limits{Parallel: 5, ExecParallel: 2, ExecPerSecond: 10},
				Schedule: prober.Schedule{Rand: func() float64 { return float64(c.draw(1000)) / 1000 }},
			})
			require.NoError(t, err)
			stop := run(t, m)
			var pods []*v1.Pod
			for i := range 6 {
				p := pod(types.UID(fmt.Sprint("u", i)))
				for j := range 2 {
					p.Spec.Containers = append(p.Spec.Containers, container(fmt.Sprint("c", j), []string{"SRL", "RL", "S", "L"}[c.draw(4)], func(p *v1.Probe) {
						p.PeriodSeconds, p.FailureThreshold = int32(1+c.draw(5)), int32(1+c.draw(3))
						if c.draw(2) == 0 {
							p.ProbeHandler = v1.ProbeHandler{Exec: &v1.ExecAction{}}
						}
					}))
				}
				pods = append(pods, p)
			}
			instance := 0
			for range 150 {
				p := pods[c.draw(len(pods))]
				name := p.Spec.Containers[c.draw(2)].Name
				place := string(p.UID) + "/" + name
				switch c.draw(9) {
				case 0, 1, 2: // it is started, or restarted if it ran
					c.mu.Lock()
					was := c.running[place]
					instance++
					id := fmt.Sprint("id-", instance)
					if was != "" {
						c.exits(p.UID, name, was, 1)
					}
					c.running[place] = id
					c.starts(p.UID, name, id)
					c.mu.Unlock()
				case 3:
					c.mu.Lock()
					if was := c.running[place]; was != "" {
						c.exits(p.UID, name, was, 0)
						delete(c.running, place)
					}
					c.mu.Unlock()
				case 4:
					m.Remove(p.UID)
					c.forget(p.UID)
				case 5:
					m.StopLiveness(p)
				case 6:
					m.Trigger(p.UID)
				case 7: // another spec: a probe that was removed starts from the beginning
					c.forget(p.UID)
					p.Spec.Containers[0].LivenessProbe, p.Spec.Containers[1].LivenessProbe = p.Spec.Containers[1].LivenessProbe, p.Spec.Containers[0].LivenessProbe
				case 8:
					m.Containers(p.UID)
					if c.draw(20) == 0 {
						p.DeletionTimestamp = new(metav1.Now())
					}
				}
				pods[p.UID[1]-'0'] = p.DeepCopy()
				m.Add(pods[p.UID[1]-'0'])
				time.Sleep(time.Duration(c.draw(2000)) * time.Millisecond)
				synctest.Wait() // until the runs of this instant have begun
			}
			for _, p := range pods {
				m.Remove(p.UID)
			}
			synctest.Wait()
			assert.Empty(t, c.flying, "seed %d: probes of removed pods do not run", seed)
			stop()
			sum += c.sum
		})
	}
	t.Log(sum, "runs")
	assert.Greater(t, sum, 1000)
}
