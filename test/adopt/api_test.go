//go:build linux

package adopt

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
)

// The pods of an API server, and static pods with their mirror pods, are taken over from a
// kubelet, and back, and over again: the same containers, mounts and statuses.
func TestIntegrationPodsOfAnAPIServerAreTakenOverBothWays(t *testing.T) {
	for _, real := range kubelets(t) {
		t.Run(real.name, func(t *testing.T) {
			m := newMember(t)
			m.start(real)
			m.untilReady()
			names := m.createCorpus(func(name string) bool {
				return name == "volume-image" && strings.HasPrefix(real.name, "v1.34.") // it does not support these by default
			})
			for _, name := range m.writeCorpus() {
				names = append(names, name+"-node")
			}
			m.untilObserved(names)
			all, calm := len(names), slices.DeleteFunc(slices.Clone(names), restless)
			t.Logf("%d pods, %d of them do not change by themselves: %v", all, len(calm), m.phases(names))
			before, mounts := m.calmInstances(), m.mounts()
			for _, next := range []program{kubeparts(t), real, kubeparts(t)} {
				versions, events := m.versions(names), m.events(t.Context())
				m.stop()
				m.start(next)
				m.untilReady()
				m.passSyncs()
				m.untilObserved(calm)
				assert.Empty(t, lost(before, m.calmInstances()), "%s restarts nothing", next.name)
				assert.Empty(t, missing(mounts, m.mounts()), "%s keeps the mounts", next.name)
				for _, name := range calm {
					m.checkStatus(next, name, versions[name])
				}
				for _, line := range missing(m.events(t.Context()), events) {
					name, _, _ := strings.Cut(line, ":")
					assert.False(t, slices.Contains(calm, name) && started.MatchString(line), "%s: event %s", next.name, line)
				}
			}
			m.checkExits(names)
		})
	}
}

// restless reports whether containers of a pod of the corpus restart again and again.
func restless(name string) bool {
	return slices.Contains([]string{"restart-always-crashes", "probe-tcp", "init-fails"}, name)
}

// started matches events that a pod which is taken over must not have.
var started = regexp.MustCompile(`^\S+: (Scheduled|Pulling|Created|Started|Killing): `)

// untilObserved waits until the API server has the settled statuses of the pods.
func (m *member) untilObserved(names []string) {
	m.t.Helper()
	names = slices.DeleteFunc(slices.Clone(names), restless)
	m.until("the statuses are settled", func() error {
		if pods := m.observed.unsettled(names); len(pods) > 0 {
			return fmt.Errorf("%v", pods)
		}
		return nil
	})
}

// phases returns the number of pods in each phase.
func (m *member) phases(names []string) map[v1.PodPhase]int {
	found := map[v1.PodPhase]int{}
	for _, name := range names {
		found[m.observed.last(name).Status.Phase]++
	}
	return found
}

// versions returns the number of versions of each pod.
func (m *member) versions(names []string) map[string]int {
	found := map[string]int{}
	for _, name := range names {
		found[name] = len(m.observed.of(name).versions)
	}
	return found
}

// calmInstances are the instances of pods that do not restart by themselves.
func (m *member) calmInstances() map[string]string {
	m.t.Helper()
	found := m.instances()
	maps.DeleteFunc(found, func(key, _ string) bool {
		name, _, _ := strings.Cut(key, " ")
		_, name, _ = strings.Cut(name, "/")
		return restless(name)
	})
	return found
}

// lost returns the changed instances, except earlier attempts that were removed after
// their exit.
func lost(before, after map[string]string) []string {
	return slices.DeleteFunc(changed(before, after), func(line string) bool {
		fields := strings.Fields(line) // namespace/pod UID container attempt ID: removed, was CONTAINER_EXITED
		if len(fields) < 8 || fields[5] != "removed," || !strings.HasSuffix(fields[7], "_EXITED") {
			return false
		}
		newer := strings.Join(fields[:3], " ")
		for key := range after {
			of := strings.Fields(key)
			if strings.Join(of[:3], " ") == newer && of[3] > fields[3] {
				return true
			}
		}
		return false
	})
}

// missing returns the elements of before that after does not have.
func missing(before, after []string) []string {
	return slices.DeleteFunc(slices.Clone(before), func(s string) bool { return slices.Contains(after, s) })
}

// checkStatus checks the versions of a pod since a change-over, after a number of earlier
// ones: the newest one is that from before, and none was unready meanwhile. A mirror pod that
// was replaced, because its manifest has a UID, begins without a status.
func (m *member) checkStatus(next program, name string, earlier int) {
	m.t.Helper()
	versions := m.observed.of(name).versions
	before, after := versions[earlier-1], versions[len(versions)-1]
	lines := differences(flatten(m.t, before), flatten(m.t, after))
	assert.Empty(m.t, unexplained(next, before, lines), "%s: status of %s", next.name, name)
	for _, v := range versions[earlier:] {
		if v.UID == before.UID && ready(before) && !ready(v) {
			m.t.Logf("%s: %s was unready meanwhile", next.name, name)
			assert.NotEqual(m.t, "kubeparts", next.name, "%s: unready meanwhile", name)
			return
		}
	}
}

func ready(pod v1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.PodReady && c.Status == v1.ConditionTrue })
}

// checkExits checks that each exit is reported once: with one code and one time, and as
// many of a container as it has restarts, or one more. A kubelet replaces the exits of
// pods whose containers all restart.
func (m *member) checkExits(names []string) {
	m.t.Helper()
	for _, name := range names {
		if name == "restart-all" {
			continue
		}
		versions := m.observed.of(name).versions
		count := map[string]int32{}
		for id, reported := range exits(versions) {
			if id != "" { // that of a container which did not start
				assert.Len(m.t, reported, 1, "%s: container %s", name, id)
				count[reported[0].Container]++
			}
		}
		restarts := map[string]int32{}
		for _, v := range versions {
			for _, c := range slices.Concat(v.Status.InitContainerStatuses, v.Status.ContainerStatuses) {
				assert.GreaterOrEqual(m.t, c.RestartCount, restarts[c.Name], "%s: restarts of container %s", name, c.Name)
				restarts[c.Name] = c.RestartCount
			}
		}
		last := versions[len(versions)-1]
		for _, c := range slices.Concat(last.Status.InitContainerStatuses, last.Status.ContainerStatuses) {
			ended := c.RestartCount
			if c.State.Terminated != nil && c.State.Terminated.ContainerID != "" {
				ended++
			}
			if !restless(name) { // several restarts may be reported together
				assert.Equal(m.t, ended, count[c.Name], "%s: exits of container %s", name, c.Name)
			}
		}
	}
}
