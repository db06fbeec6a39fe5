//go:build unix

package compare

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/test/internal/markdown"
)

// A report is the result of a run, as in docs/differences.md.
type report struct {
	result         result
	on             time.Time
	kubelet, agent *snapshot
	subjects       int
	defects        []defect
}

// maxShown is the length of values in the report.
const maxShown = 160

// withoutReason is the heading above the differences without a reason.
const withoutReason = "## Without a reason"

const reportIntroduction = `# Differences from the kubelet, observed

Made by ` + "`bash .ci/run compare`" + ` on %s. The pods of [test/compare/corpus](../test/compare/corpus) ran on a kubelet %s and on the complete node of this repository (examples/kubelet), one after the other on the same machine. Each had the same KubeletConfiguration, a containerd %s behind a proxy that records its requests, and a kube-apiserver.

| | |
|---|---|
| pods | %d, of which %d as manifests and %d from the API server |
| recorded CRI calls | kubelet %d, agent %d |
| compared subjects | %d |
| differences | %d, by %d reasons |
| **without a reason** | **%d** |
| machine | %s/%s, %d processors |

Compared are, field by field:

- every request to the container runtime that changes something, with the runtime's error, and their order within a pod; of other requests, the distinct ones
- the pod's status when it does not change any longer, the sequence of its phases and conditions, the last status of a deleted pod, and mirror pods
- events: reason, type, message, reporter and object
- the files of cgroups, /etc/hosts, /etc/resolv.conf and /etc/hostname of containers, the pod's directory below --root-dir with modes, owners and contents of volumes, and log files with the links to them
- the Node object

IDs, UIDs, times, ports, addresses of pods and temporary directories are replaced by stable names. Not compared are: how often a request is repeated (docs/benchmarks.md has the costs), the order of requests of different pods, restarts of a container after the first one, counts of events, the random file names of termination messages, and the order of environment variables, which is random with the kubelet.

[reasons.txt](../test/compare/reasons.txt) has the reasons with the patterns of their differences. A difference without a reason, or a reason without a difference, fails the step.

    bash .ci/run compare
    go run ./test compare --focus 'probes|volumes' --save /tmp/runs
    go run ./test compare --from /tmp/runs --all

## Reasons

The differences of a reason that depends on time do not appear in every run.

| differences | reason | for example |
|---|---|---|
`

// markdown returns the report as a document.
func (r report) markdown() string {
	var b strings.Builder
	static := 0
	for _, pod := range r.kubelet.Pods {
		if pod.Static {
			static++
		}
	}
	groups := r.result.byReason()
	fmt.Fprintf(&b, reportIntroduction, r.on.Format(time.DateOnly), r.kubelet.Version, r.kubelet.Containerd,
		len(r.kubelet.Pods), static, len(r.kubelet.Pods)-static, len(r.kubelet.Calls), len(r.agent.Calls),
		r.subjects, r.result.count(), len(groups), len(r.result.unexplained), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	for _, g := range groups {
		example := "in other runs"
		if len(g.found) > 0 {
			example = markdown.Cell(shorten(g.found[0]))
		}
		fmt.Fprintf(&b, "| %d | %s | %s |\n", len(g.found), markdown.Cell(g.why), example)
	}
	if len(r.result.unexplained) > 0 {
		b.WriteString("\n" + withoutReason + "\n\n")
		for _, d := range r.result.unexplained {
			fmt.Fprintf(&b, "- %s\n", markdown.Cell(shorten(d)))
		}
	}
	b.WriteString("\n" + defectsSection(r.defects))
	return b.String()
}

// A group contains the differences of a reason.
type group struct {
	why   string
	found []difference
}

// byReason returns the reasons in the order of reasons.txt, those with several patterns once.
func (r result) byReason() (groups []group) {
	for i, reason := range r.reasons {
		at := slices.IndexFunc(groups, func(g group) bool { return g.why == reason.why })
		if at < 0 {
			at = len(groups)
			groups = append(groups, group{why: reason.why})
		}
		groups[at].found = append(groups[at].found, r.explained[i]...)
	}
	return groups
}

// shorten returns a difference with short values.
func shorten(d difference) string {
	cut := func(s string) string {
		if len(s) <= maxShown {
			return s
		}
		return strings.ToValidUTF8(s[:maxShown], "") + "…"
	}
	d.kubelet, d.agent = cut(d.kubelet), cut(d.agent)
	return d.String()
}
