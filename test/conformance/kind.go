package conformance

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubeparts/kubeparts/test/internal/reasons"
)

// A kind is one of Kubernetes' suites of tests in clusters.
type kind struct {
	binary   string // that .ci/run builds
	step     string // of .ci/run, which builds it
	focus    string // default of --focus
	procs    int    // default of --procs
	excluded string // list of the excluded tests

	// introduction is the beginning of the report.
	introduction string

	// machineRoot: the tests expect the node's root directory at /var/lib/kubelet.
	machineRoot bool

	// apiServer are arguments of kube-apiserver.
	apiServer []string

	// gates are feature gates that are off by default in Kubernetes, are enabled in the control
	// plane, and are always enabled in the node.
	gates []string
}

// reasons returns the excluded tests.
func (k kind) reasons() []reasons.Reason { return reasons.Parse(k.excluded) }

//go:embed excluded.txt
var excludedOfNode string

//go:embed excluded-dra.txt
var excludedOfDRA string

// kinds are the suites by the value of --suite.
var kinds = map[string]kind{
	"node": {
		binary: "node.test", step: "conformance-tools", focus: `\[NodeConformance\]`, procs: 10, excluded: excludedOfNode, introduction: introductionOfNode,
	},
	"dra": {
		// Without that label are the tests of the API server, the controllers and the scheduler.
		binary: "dra.test", step: "dra-tools", focus: `\[Feature:DynamicResourceAllocation\]`, procs: 4, excluded: excludedOfDRA, introduction: introductionOfDRA,
		machineRoot: true, apiServer: []string{"--runtime-config=resource.k8s.io/v1beta1=true,resource.k8s.io/v1beta2=true,scheduling.k8s.io/v1beta1=true"},
		gates: []string{"GenericWorkload", "DRAWorkloadResourceClaims"},
	},
}

func kindOf(name string) (kind, error) {
	k, ok := kinds[name]
	if !ok {
		return k, fmt.Errorf("--suite %q: want %s", name, strings.Join(slices.Sorted(maps.Keys(kinds)), " or "))
	}
	return k, nil
}
