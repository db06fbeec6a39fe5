package cri_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// Bits of a process's capability sets.
const (
	capChown    = 1 << 0
	capNetAdmin = 1 << 12
	capSysAdmin = 1 << 21
)

// securityOnContainerd checks the privileges of the processes of a container (section
// 17).
func securityOnContainerd(t *testing.T, s *sharedEngine) {
	t.Run("of containers", func(t *testing.T) {
		t.Parallel()
		containers, checks := securityCases()
		a := s.enginePod(t, containers...)
		a.ends()
		for name, check := range checks {
			t.Run(name, func(t *testing.T) { check(t, a.log(name, 0)) })
		}
	})

	t.Run("of the pod se-6", func(t *testing.T) {
		t.Parallel()
		ids := "id -u; id -g; id -G; grep Seccomp: /proc/self/status"
		own := script("own", ids)
		own.SecurityContext = &v1.SecurityContext{
			RunAsUser: new(int64(1001)), RunAsGroup: new(int64(2002)),
			SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeUnconfined},
		}
		a := s.enginePod(t, script("web", ids), own)
		a.pod.Spec.SecurityContext = &v1.PodSecurityContext{
			RunAsUser: new(int64(1000)), RunAsGroup: new(int64(2000)), RunAsNonRoot: new(true),
			FSGroup: new(int64(4000)), SupplementalGroups: []int64{3000},
			SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeRuntimeDefault},
		}
		a.ends()
		assert.Equal(t, "1000\n2000\n2000 3000 4000\nSeccomp:\t2\n", sortedGroups(t, a.log("web", 0)))
		assert.Equal(t, "1001\n2002\n2002 3000 4000\nSeccomp:\t0\n", sortedGroups(t, a.log("own", 0)), "the container's security context takes precedence")
	})

	t.Run("root is refused se-5", func(t *testing.T) {
		t.Parallel()
		asRoot, byName := script("as-root", "true"), script("by-name", "true")
		byName.Image = "kubeparts.test/nobody:1"
		zero := script("zero", "true")
		zero.SecurityContext = &v1.SecurityContext{RunAsUser: new(int64(0))}
		a := s.enginePod(t, asRoot, byName, zero)
		a.pod.Spec.SecurityContext = &v1.PodSecurityContext{RunAsNonRoot: new(true)}
		who := func(name string) string {
			return fmt.Sprintf("(pod: %q, container: %s)", fmt.Sprintf("%s_prod(%s)", a.pod.Name, a.pod.UID), name)
		}
		for name, message := range map[string]string{
			"as-root": "container has runAsNonRoot and image will run as root " + who("as-root"),
			"by-name": "container has runAsNonRoot and image has non-numeric user (nobody), cannot verify user is non-root " + who("by-name"),
			"zero":    "container's runAsUser breaks non-root policy " + who("zero"),
		} {
			failed := a.failsWith(name, "CreateContainerConfigError")
			assert.Equal(t, runtime.StartContainer, failed.Kind)
			assert.Equal(t, message, failed.Message)
			assert.Contains(t, a.events(), "Warning Failed spec.containers{"+name+"}: Error: "+message)
		}
		assert.Empty(t, a.status().Containers, "no container was created")
	})
}

// sortedGroups sorts the third line, which is a set.
func sortedGroups(t *testing.T, text string) string {
	t.Helper()
	lines := strings.Split(text, "\n")
	require.Len(t, lines, 5, text)
	groups := map[string]bool{}
	for _, g := range strings.Fields(lines[2]) {
		groups[g] = true
	}
	for _, want := range []string{"3000", "4000"} {
		require.True(t, groups[want], lines[2])
		delete(groups, want)
	}
	require.Len(t, groups, 1, lines[2])
	lines[2] = lines[1] + " 3000 4000"
	require.True(t, groups[lines[1]])
	return strings.Join(lines, "\n")
}

// securityCases returns containers that print their privileges, and for each the
// check of its output.
func securityCases() ([]v1.Container, map[string]func(*testing.T, string)) {
	var containers []v1.Container
	checks := map[string]func(*testing.T, string){}
	add := func(name, text string, sc *v1.SecurityContext, check func(*testing.T, string)) {
		c := script(name, text)
		c.SecurityContext = sc
		containers, checks[name] = append(containers, c), check
	}
	prints := func(want string) func(*testing.T, string) {
		return func(t *testing.T, got string) { assert.Equal(t, want, got) }
	}
	// effective checks bits of the capabilities that a container has.
	effective := func(mask, want uint64) func(*testing.T, string) {
		return func(t *testing.T, got string) {
			caps, err := strconv.ParseUint(strings.TrimSpace(strings.TrimPrefix(got, "CapEff:")), 16, 64)
			require.NoError(t, err)
			assert.Equal(t, want, caps&mask, "%x", caps)
		}
	}
	const all, caps = ^uint64(0), "grep CapEff: /proc/self/status"
	write := "touch /file && echo written || echo refused"
	add("writable-root", write, nil, prints("written\n"))
	add("read-only-root", write+" 2>/dev/null", &v1.SecurityContext{ReadOnlyRootFilesystem: new(true)}, func(t *testing.T, got string) {
		assert.Contains(t, got, "refused\n")
	})
	add("capabilities-default", caps, nil, effective(capChown|capNetAdmin|capSysAdmin, capChown))
	add("capabilities-none", caps, &v1.SecurityContext{Capabilities: &v1.Capabilities{Drop: []v1.Capability{"ALL"}}}, effective(all, 0))
	add("capabilities-one", caps, &v1.SecurityContext{Capabilities: &v1.Capabilities{
		Add: []v1.Capability{"NET_ADMIN"}, Drop: []v1.Capability{"ALL"},
	}}, effective(all, capNetAdmin))
	add("capabilities-more", caps, &v1.SecurityContext{Capabilities: &v1.Capabilities{
		Add: []v1.Capability{"NET_ADMIN"}, Drop: []v1.Capability{"CHOWN"},
	}}, effective(capChown|capNetAdmin|capSysAdmin, capNetAdmin))

	seccomp := "grep Seccomp: /proc/self/status"
	add("seccomp-unset", seccomp, nil, prints("Seccomp:\t0\n")) // se-2
	add("seccomp-default", seccomp, &v1.SecurityContext{
		SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeRuntimeDefault},
	}, prints("Seccomp:\t2\n"))
	add("seccomp-unconfined", seccomp, &v1.SecurityContext{
		SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeUnconfined},
	}, prints("Seccomp:\t0\n"))

	privs := "grep NoNewPrivs: /proc/self/status"
	add("escalation-unset", privs, nil, prints("NoNewPrivs:\t0\n"))
	add("escalation-allowed", privs, &v1.SecurityContext{AllowPrivilegeEscalation: new(true)}, prints("NoNewPrivs:\t0\n"))
	add("escalation-refused", privs, &v1.SecurityContext{AllowPrivilegeEscalation: new(false)}, prints("NoNewPrivs:\t1\n")) // se-7

	// A file that is masked is the null device, and a path that is read-only
	// is a mount of its own.
	proc := "[ -c /proc/interrupts ] && echo masked; grep -o ' /proc/sys proc r[ow]' /proc/mounts; true"
	add("proc-default", proc, nil, prints("masked\n /proc/sys proc ro\n")) // se-8
	add("proc-unmasked", proc, &v1.SecurityContext{ProcMount: new(v1.UnmaskedProcMount)}, prints(""))

	add("privileged", "mkdir /m && mount -t tmpfs none /m && echo mounted; "+seccomp+"; "+caps, &v1.SecurityContext{
		Privileged:     new(true),
		SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeRuntimeDefault},
	}, func(t *testing.T, got string) {
		rest, ok := strings.CutPrefix(got, "mounted\nSeccomp:\t0\n")
		require.True(t, ok, got)
		effective(capSysAdmin|capNetAdmin, capSysAdmin|capNetAdmin)(t, rest)
	})
	return containers, checks
}
