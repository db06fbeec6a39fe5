package lab

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGapsNameWhatIsMissingAndHowToGetIt(t *testing.T) {
	has := func() error { return nil }
	lacks := func() error { return errors.New("not there") }
	known := map[string]need{
		"a": {check: has, get: "get a", with: []string{"b", "c"}},
		"b": {check: lacks, get: "get b", with: []string{"c"}},
		"c": {check: lacks, get: "get c", with: []string{"a"}},
		"d": {check: has},
	}
	for name, test := range map[string]struct {
		names []string
		want  []string
	}{
		"nothing asked":            {},
		"all there":                {names: []string{"d"}},
		"missing behind another":   {names: []string{"a"}, want: []string{"  b: not there (get b)", "  c: not there (get c)"}},
		"asked for twice, one row": {names: []string{"c", "b", "c"}, want: []string{"  c: not there (get c)", "  b: not there (get b)"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := gaps(known, test.names)
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
	_, err := gaps(known, []string{"containrd"})
	require.ErrorContains(t, err, `"containrd"`)
}

func TestEveryNeedHasACommand(t *testing.T) {
	for name, n := range needs {
		require.NotEmpty(t, n.get, name)
		for _, other := range n.with {
			require.Contains(t, needs, other, name)
		}
	}
}

// outcome stands in for a test that asks Need.
type outcome struct {
	testing.TB
	how string
}

func (o *outcome) Helper()               {}
func (o *outcome) Skip(...any)           { o.how = "skip" }
func (o *outcome) Fatal(...any)          { o.how = "fail" }
func (o *outcome) Skipf(string, ...any)  { o.how = "skip" }
func (o *outcome) Fatalf(string, ...any) { o.how = "fail" }

func TestNeedSkipsOnAMachineAndFailsInCI(t *testing.T) {
	t.Setenv("KUBEPARTS_CONTAINERD", "/usr/bin/containerd")
	needs["unobtainium"] = need{check: func() error { return errors.New("not there") }, get: "wait"}
	t.Cleanup(func() { delete(needs, "unobtainium") })
	for ci, want := range map[string]string{"": "skip", "1": "fail"} {
		t.Setenv("KUBEPARTS_CI", ci)
		var o outcome
		Need(&o, "unobtainium")
		require.Equal(t, want, o.how, "KUBEPARTS_CI=%q", ci)
		o = outcome{}
		Need(&o)
		require.Empty(t, o.how)
	}
}
