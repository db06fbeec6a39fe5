package hollow

import (
	"bytes"
	"flag"
	"io"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

// A node needs less than a tenth of the resources of a kubemark node.
func TestIntegrationHollowNodesOnACluster(t *testing.T) {
	control := lab.NewControlPlane(t, lab.ControlPlaneConfig{NodeMonitorGrace: time.Minute})
	var out bytes.Buffer
	o, err := parseFlags([]string{"--kubeconfig=" + control.Kubeconfig, "--nodes=20", "--pods=200", "--for=5s"}, &out)
	require.NoError(t, err)
	require.NoError(t, run(t.Context(), o, &out), "%s", &out)
	t.Log(out.String())
	assert.Contains(t, out.String(), "20/20 nodes are ready\n")
	assert.Regexp(t, `20 nodes, 200 pods, measured for \d+ s\n`, out.String()) // longer on a busy machine
	for what, most := range map[string]float64{
		`([\d.]+) MB a node;`:     22, // a tenth of kubemark's
		`in all, ([\d.]+) a node`: 0.045,
	} {
		found := regexp.MustCompile(what).FindStringSubmatch(out.String())
		require.Len(t, found, 2, what)
		is, err := strconv.ParseFloat(found[1], 64)
		require.NoError(t, err)
		lab.Below(t, what, is, most)
	}

	// Nothing remains.
	api, _, err := labenv.NewClient(control.Kubeconfig)
	require.NoError(t, err)
	nodes, err := api.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Empty(t, nodes.Items)
	pods, err := api.CoreV1().Pods("hollow").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Empty(t, pods.Items)
}

// The nodes of another program are measured in the same way.
func TestIntegrationAnotherProgramRunsTheNodes(t *testing.T) {
	control := lab.NewControlPlane(t, lab.ControlPlaneConfig{NodeMonitorGrace: time.Minute})
	binary := t.TempDir() + "/hollow"
	built, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "github.com/kubeparts/kubeparts/examples/hollow").CombinedOutput()
	require.NoError(t, err, "%s", built)
	args := []string{"--kubeconfig=" + control.Kubeconfig, "--nodes=3", "--pods=30", "--for=1s", "--steady", "--program"}
	var out bytes.Buffer
	o, err := parseFlags(append(args, binary+" --adopt --kubeconfig={kubeconfig}"), &out)
	require.NoError(t, err)
	require.NoError(t, run(t.Context(), o, &out), "%s", &out)
	t.Log(out.String())
	assert.Contains(t, out.String(), "3/3 nodes are ready\n")
	assert.Regexp(t, `memory +[1-9]\d* MB in all`, out.String())
	assert.Regexp(t, `until then [\d.]+ s`, out.String())
	assert.NotContains(t, out.String(), "goroutines")

	o, err = parseFlags(append(args, binary+" --no-such-flag"), &out)
	require.NoError(t, err)
	assert.ErrorContains(t, run(t.Context(), o, &out), "no-such-flag")
}

func TestInvalidFlagsAreErrors(t *testing.T) {
	for args, want := range map[string]string{
		"":                                   "either --kubeconfig or --lab",
		"--lab --kubeconfig=x":               "either --kubeconfig or --lab",
		"--lab --nodes=0":                    "--nodes",
		"--lab --nodes=2 --pods=221":         "from 0 to 220",
		"--lab --for=0s":                     "--for",
		"--lab extra":                        `"extra"`,
		"--lab --program=kwok --own-watches": "--own-watches",
		"--lab --notes=1":                    "notes",
		"--lab --nodes=many":                 "many",
	} {
		_, err := parseFlags(strings.Fields(args), io.Discard)
		assert.ErrorContains(t, err, want, args)
	}
	var help bytes.Buffer
	_, err := parseFlags([]string{"--help"}, &help)
	assert.ErrorIs(t, err, flag.ErrHelp)
	assert.Contains(t, help.String(), "hollow --lab")
	assert.Contains(t, help.String(), "-own-watches")
}

func TestAMissingFileIsNamed(t *testing.T) {
	err := run(t.Context(), options{kubeconfig: "nowhere", nodes: 1, pods: 1}, io.Discard)
	assert.ErrorContains(t, err, "nowhere")
}

func TestTheCostIsComparedWithKubemark(t *testing.T) {
	var out bytes.Buffer
	now := time.Now()
	cost{
		options{nodes: 100, pods: 1000}, usage{heap: 1e6},
		usage{at: now, cpu: 2 * time.Second}, usage{at: now.Add(10 * time.Second), cpu: 3 * time.Second, memory: 220e6, heap: 51e6, goroutines: 500}, 300,
	}.write(&out)
	assert.Equal(t, `
100 nodes, 1000 pods, measured for 10 s
  memory        220 MB in all, 2.20 MB a node; kubemark: 220 MB a node, 100 times
  processors  0.100 in all, 0.00100 a node; until then 2.0 s; kubemark: 0.09 a node, 90 times
  heap           51 MB in use, 50.0 KB a pod
  calls        30.0 a second, 0.30 a node
  goroutines    500, 5.0 a node
`, out.String())
}
