//go:build linux

package kubeadm

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/ginkgo"
	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

// suiteProgram is Kubernetes' suite of workloads and of the network, which .ci/run cluster-tools builds.
const suiteProgram = "cluster.test"

// conformanceFocus selects tests of conformance that need what the other suites of this repository have not: several
// nodes, kube-proxy, DNS.
const conformanceFocus = `\[sig-network\] (DNS|Services|EndpointSlice|Networking|Proxy) .*\[Conformance\]|\[sig-apps\] (Deployment|Daemon set) .*\[Conformance\]`

// conformanceTests is the least number of tests that must pass.
const conformanceTests = 50

func suiteDirectory(t *testing.T) string {
	t.Helper()
	dir, err := labenv.Cached("conformance-" + lab.KubernetesVersion)
	require.NoError(t, err)
	require.NoError(t, labenv.Require("bash .ci/run cluster-tools", dir, suiteProgram, "ginkgo"))
	return dir
}

// usedBySuite reports whether tests of conformanceFocus use an image, which the machines cannot pull.
func usedBySuite(image string) bool {
	name, _, _ := strings.Cut(image, ":")
	return slices.Contains([]string{"agnhost", "busybox", "nginx", "glibc-dns-testing"}, name)
}

// conformance runs the tests of conformanceFocus in the machine, as administrator of the cluster.
func (m *machine) conformance() {
	m.t.Helper()
	dir := suiteDirectory(m.t)
	suite := ginkgo.Suite{
		Program: filepath.Join(dir, "ginkgo"), Binary: filepath.Join(dir, suiteProgram), Command: m.Command,
		Args: []string{"--kubeconfig=/etc/kubernetes/admin.conf", "--provider=skeleton", "--num-nodes=2"},
		Logs: m.file("conformance"), Timeout: 20 * time.Minute, Printf: m.t.Logf,
	}
	specs, err := suite.Run(m.t.Context(), ginkgo.Selection{Name: "conformance", Focus: conformanceFocus, Procs: 8})
	require.NoError(m.t, err)
	passed := 0
	for _, spec := range specs {
		switch {
		case spec.State == "passed" && spec.Node == "It":
			passed++
			m.t.Logf("passed in %v: %s", spec.Took.Round(time.Second), spec.Name)
		case spec.State != "passed" && (spec.State != "skipped" || spec.Why != ""):
			assert.Fail(m.t, "a test has not passed", "%s %s: %s", spec.State, cmp.Or(spec.Name, spec.Node), spec.Why)
		}
	}
	m.t.Logf("%d tests of conformance have passed", passed)
	assert.GreaterOrEqual(m.t, passed, conformanceTests)
	if m.t.Failed() {
		m.t.Log(tail(m.file("conformance/conformance.log"), 1000))
	}
}
