package main

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/internal/lab"
)

// A report is the result of a run, as in docs/node-conformance.md.
type report struct {
	on         time.Time
	took       time.Duration
	focus      string
	containerd string // version
	results    []result
}

const introduction = `# Node conformance: a run of Kubernetes' own tests

Made by ` + "`bash .ci/run conformance`" + ` on %s. Every node must pass Kubernetes' end-to-end tests that are named [NodeConformance]. Here they ran against the complete node (examples/kubelet), as the only node of a cluster of etcd, kube-apiserver, kube-controller-manager and kube-scheduler, on a real containerd.

| | |
|---|---|
| tests | those of test/e2e/common and test/e2e/node of Kubernetes %s whose names match ` + "`%s`" + ` |
| with | containerd %s, Kubernetes %s, %s on %s/%s with %d processors |
| took | %s |
| passed | %d |
| **failed** | **%d** |
| skipped by the test | %d |
| excluded | %d |

    bash .ci/run conformance                       # all of it, on Debian as root; builds what it needs
    go run ./test/conformance --focus 'Probing container' --logs /tmp/logs

[excluded.txt](../test/conformance/excluded.txt) lists the excluded tests with reasons; ` + "`--all`" + ` runs them as well.

No registry was available: the suite's images are built from Debian's busybox, bash, curl and netcat and the programs of Kubernetes' test/images, and are pulled from a mirror in the process. The images of nginx, of the DNS tests and of image volumes are replaced by busybox. The cluster has no kube-proxy and no DNS; these tests do not need them.

## Each test

`

// markdown returns the report as a document.
func (r report) markdown() string {
	var b strings.Builder
	n := count(r.results)
	fmt.Fprintf(&b, introduction, r.on.Format(time.DateOnly), lab.KubernetesVersion, r.focus, r.containerd, strings.TrimPrefix(lab.KubernetesVersion, "v"),
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), r.took.Round(time.Second), n[passed], n[failed], n[skipped], n[excludedState])
	b.WriteString("| | took | test |\n|---|---|---|\n")
	for _, one := range sorted(r.results) {
		name := cell(one.name)
		if one.why != "" {
			name += "<br>" + cell(one.why)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", one.is, one.took.Round(time.Second), name)
	}
	return b.String()
}

// cell escapes text for a cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "*", `\*`, "<", "&lt;").Replace(text)
}
