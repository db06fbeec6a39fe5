package conformance

import (
	"fmt"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/markdown"
)

// A report is the result of a run, as in docs/node-conformance.md and docs/dra.md.
type report struct {
	kind       kind
	on         time.Time
	took       time.Duration
	focus      string
	containerd string // version
	results    []result
}

const introductionOfNode = `# Node conformance: a run of Kubernetes' own tests

Made by ` + "`bash .ci/run conformance`" + ` on %s. Every node must pass Kubernetes' end-to-end tests that are named [NodeConformance]. Here they ran against the complete node (examples/kubelet), as the only node of a cluster of etcd, kube-apiserver, kube-controller-manager and kube-scheduler, on a real containerd.

| | |
|---|---|
| tests | those of test/e2e/common and test/e2e/node of Kubernetes %s whose names match ` + "`%s`" + ` |
| with | containerd %s, Kubernetes %s, %s |
| took | %s |
| passed | %d |
| **failed** | **%d** |
| skipped by the test | %d |
| excluded | %d |

    bash .ci/run conformance                       # all of it, on Debian as root; builds what it needs
    go run ./test conformance --focus 'Probing container' --logs /tmp/logs

[excluded.txt](../test/conformance/excluded.txt) lists the excluded tests with reasons; ` + "`--all`" + ` runs them as well.

No registry was available: the suite's images are built from Debian's busybox, bash, curl and netcat and the programs of Kubernetes' test/images, and are pulled from a mirror in the process. The images of nginx, of the DNS tests and of image volumes are replaced by busybox. The cluster has no kube-proxy and no DNS; these tests do not need them.

## Each test

`

const introductionOfDRA = `# Dynamic resource allocation: a run of Kubernetes' own tests

Made by ` + "`bash .ci/run dra`" + ` on %s. test/e2e/dra contains Kubernetes' end-to-end tests of dynamic resource allocation in clusters. Those that involve the node ran against the complete node (examples/kubelet), as the only node of a cluster of etcd, kube-apiserver, kube-controller-manager and kube-scheduler, on a real containerd.

| | |
|---|---|
| tests | those of test/e2e/dra of Kubernetes %s whose names match ` + "`%s`" + ` |
| with | containerd %s, Kubernetes %s, %s |
| took | %s |
| passed | %d |
| **failed** | **%d** |
| skipped by the test | %d |
| excluded | %d |

    bash .ci/run dra                               # all of it, on Debian as root; builds what it needs
    go run ./test conformance --suite dra --focus 'rolling update' --logs /tmp/logs

[excluded-dra.txt](../test/conformance/excluded-dra.txt) lists the excluded tests with reasons; ` + "`--all`" + ` runs them as well. Tests that skip themselves require two or three nodes.

The driver of the tests is Kubernetes' test/e2e/dra/test-driver. It runs in the processes of the tests; a pod on the node connects its sockets below /var/lib/kubelet, and writes its CDI files, over exec and port-forward of the node. In the image of this pod, a stand-in of tools/conformance/hostpathplugin takes the place of the proxy of the CSI driver for host paths.

Of the feature gates that are off by default, GenericWorkload and DRAWorkloadResourceClaims are enabled in the control plane: claims of PodGroups are always enabled in the node.

Not run are the tests in this directory without that label: those of the API server, the controllers and the scheduler alone.

## Each test

`

// markdown returns the report as a document.
func (r report) markdown() string {
	var b strings.Builder
	n := count(r.results)
	fmt.Fprintf(&b, r.kind.introduction, r.on.Format(time.DateOnly), lab.KubernetesVersion, r.focus, r.containerd, strings.TrimPrefix(lab.KubernetesVersion, "v"),
		markdown.Machine(), r.took.Round(time.Second), n[passed], n[failed], n[skipped], n[excludedState])
	b.WriteString("| | took | test |\n|---|---|---|\n")
	for _, one := range sorted(r.results) {
		name := markdown.Cell(one.name)
		if one.why != "" {
			name += "<br>" + markdown.Cell(one.why)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", one.is, one.took.Round(time.Second), name)
	}
	return b.String()
}
