package operators

import (
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/test/internal/ginkgo"
)

func TestFlags(t *testing.T) {
	var out strings.Builder
	_, err := parse([]string{"--help"}, &out)
	assert.ErrorIs(t, err, flag.ErrHelp)
	assert.Contains(t, out.String(), "operators [flags] PROJECT PACKAGE...")
	_, err = parse([]string{"dir"}, &out)
	assert.ErrorContains(t, err, "missing PROJECT or PACKAGE")
	_, err = parse([]string{"--only=both", "dir", "./x"}, &out)
	assert.ErrorContains(t, err, "--only=both: want control or ours")
	o, err := parse([]string{"--focus=a b", "/dir", "./x", "./y"}, &out)
	require.NoError(t, err)
	assert.Equal(t, []string{"./x", "./y"}, o.packages)
	assert.Equal(t, "a b", o.focus)
}

func TestTestsAreThoseWithoutSubtestsAndSuites(t *testing.T) {
	r := &results{specs: map[string]string{}}
	r.addTests(`=== RUN   TestControllers
Running Suite: Controller Suite - /dir
--- FAIL: TestControllers (3.41s)
=== RUN   TestTable
=== RUN   TestTable/a
=== RUN   TestTable/b
--- FAIL: TestTable (0.00s)
    --- PASS: TestTable/a (0.00s)
    --- FAIL: TestTable/b (0.00s)
=== RUN   TestSkipped
--- SKIP: TestSkipped (0.00s)
=== RUN   TestPanics
`)
	assert.Equal(t, map[string]string{"TestTable/a": "passed", "TestTable/b": "failed", "TestSkipped": "skipped", "TestPanics": "failed"}, r.specs)
	assert.Equal(t, 1, r.passed())
	assert.Equal(t, 3, r.ran())
}

func TestSpecsWithOneNameAreNumbered(t *testing.T) {
	r := &results{specs: map[string]string{}}
	require.NoError(t, r.addSpecs([]ginkgo.Spec{
		{Name: "a", Node: "It", State: "passed"}, {Name: "a", Node: "It", State: "timedout"},
		{Name: "b", Node: "It", State: "pending"}, {Node: "BeforeSuite", State: "passed"},
	}))
	assert.Equal(t, map[string]string{"a": "passed", "a (2)": "failed", "b": "skipped"}, r.specs)
}

func TestSpecsThatAreSkippedBecauseTheSuiteFailsAreNoResult(t *testing.T) {
	r := &results{specs: map[string]string{}}
	err := r.addSpecs([]ginkgo.Spec{{Name: "a", Node: "It", State: "skipped"}, {Node: "SynchronizedBeforeSuite", State: "failed", Why: "no API server"}})
	assert.EqualError(t, err, "SynchronizedBeforeSuite failed: no API server")
}

func TestTheReportListsWhatDiffers(t *testing.T) {
	control := &results{specs: map[string]string{"a": "passed", "b": "passed", "c": "failed"}, took: 90 * time.Second, memory: 300e6}
	ours := &results{specs: map[string]string{"a": "passed", "b": "failed", "c": "passed"}, took: 1234 * time.Millisecond, memory: 40e6}
	var out strings.Builder
	err := report(&out, []row{{"./x", control, ours}, {"./y", nil, ours}})
	assert.EqualError(t, err, "1 tests pass with the control only")
	assert.Equal(t, `| package | control: passed, time, memory | ours: passed, time, memory | pass with the control only |
|---|---|---|---|
| ./x | 2 of 3, 1m30s, 300 MB | 2 of 3, 1.2s, 40 MB | 1 |
| ./y | – | 2 of 3, 1.2s, 40 MB | 0 |
./x: b: control passed, ours failed
./x: c: control failed, ours passed
`, out.String())
}

func TestTheMemoryIsThatOfChildrenWithTheName(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("there is no /proc")
	}
	cmd := exec.Command("sleep", "600")
	require.NoError(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	assert.Positive(t, anonymous(os.Getpid(), []string{"sleep"}))
	assert.Zero(t, anonymous(os.Getpid(), []string{"etcd"}))
}
