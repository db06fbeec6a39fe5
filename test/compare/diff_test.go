//go:build unix

package compare

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDiff(t *testing.T) {
	for name, c := range map[string]struct {
		kubelet, agent document
		want           []string
	}{
		"equal": {document{"a": object{"b": []any{"1"}}}, document{"a": object{"b": []any{"1"}}}, nil},
		"a field": {
			document{"CreateContainer web/main": object{"config": object{"linux": object{"resources": object{"cpu_period": "100000"}}}}},
			document{"CreateContainer web/main": object{"config": object{"linux": object{"resources": object{}}}}},
			[]string{`CreateContainer web/main config.linux.resources.cpu_period: kubelet "100000", agent unset`},
		},
		"a subject": {document{"events a": "1"}, document{"events b": "1"}, []string{`events a: kubelet "1", agent unset`, `events b: kubelet unset, agent "1"`}},
		"a type":    {document{"a": "1"}, document{"a": object{}}, []string{`a: kubelet "1", agent {}`}},
		"elements with names": {
			document{"a": []any{object{"name": "x", "value": "1"}, object{"name": "y"}, object{"name": "z"}}},
			document{"a": []any{object{"name": "z"}, object{"name": "x", "value": "2"}}},
			[]string{`a [x].value: kubelet "1", agent "2"`, `a [y]: kubelet {"name":"y"}, agent unset`, `a [order]: kubelet ["x","z"], agent ["z","x"]`},
		},
		"elements at positions":  {document{"a": []any{"1", "2"}}, document{"a": []any{"1", "3"}}, []string{`a [1]: kubelet "2", agent "3"`}},
		"lists of other lengths": {document{"a": []any{"1", "2"}}, document{"a": []any{"2", "3", "4"}}, []string{`a []: kubelet "1", agent unset`, `a []: kubelet unset, agent "3"`, `a []: kubelet unset, agent "4"`}},
		"repetitions":            {document{"a": []any{"1", "1"}}, document{"a": []any{"1"}}, []string{`a []: kubelet "1", agent unset`}},
		"requests, of which one is distinct": {
			document{"requests A": []any{object{"x": "1"}, object{"x": "2"}}}, document{"requests A": object{"x": "2"}},
			[]string{`requests A []: kubelet {"x":"1"}, agent unset`},
		},
		"one request": {document{"requests A": object{"x": "1"}}, document{"requests A": object{"x": "2"}}, []string{`requests A x: kubelet "1", agent "2"`}},
	} {
		var got []string
		for _, d := range diff(c.kubelet, c.agent) {
			got = append(got, d.String())
		}
		assert.Equal(t, c.want, got, name)
	}
}

func TestRequestsThatMayBeConcurrentHaveNoOrder(t *testing.T) {
	assert.Equal(t,
		[]any{"CreateContainer b", "CreateContainer a", "StopContainer a", "StopContainer b", "RemoveContainer a", "RemoveContainer b"},
		sortConcurrent([]string{"CreateContainer b", "CreateContainer a", "StopContainer b", "StopContainer a", "RemoveContainer b", "RemoveContainer a"}))
}
