package conformance_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/kube/internal/conformance"
)

func answer(code int, body any) *conformance.Answer {
	return &conformance.Answer{Code: code, Body: body}
}

func TestCompareReportsEachField(t *testing.T) {
	type object = map[string]any
	for _, test := range []struct {
		name      string
		want, got *conformance.Answer
		paths     []string
	}{
		{"equal", answer(200, object{"a": []any{1.0}}), answer(200, object{"a": []any{1.0}}), nil},
		{"code", answer(404, object{"a": 1.0}), answer(200, object{"a": 2.0}), []string{"code"}},
		{"absent and additional", answer(200, object{"a": 1.0, "c": object{"d/e": 1.0}}), answer(200, object{"b": 1.0, "c": object{}}), []string{"body/a", "body/b", "body/c/d~1e"}},
		{"item", answer(200, []any{1.0, 2.0}), answer(200, []any{1.0, 3.0}), []string{"body/1"}},
		{"length", answer(200, []any{1.0}), answer(200, []any{1.0, 3.0}), []string{"body"}},
		{"kind of value", answer(200, object{"a": object{}}), answer(200, object{"a": "x"}), []string{"body/a"}},
		{"header", &conformance.Answer{Code: 200, Headers: map[string]string{"Warning": "w"}}, answer(200, nil), []string{"header/Warning"}},
		{"not sent", answer(200, nil), nil, []string{"request"}},
		{"not recorded", nil, answer(200, nil), []string{"request"}},
	} {
		s := &conformance.Scenario{Name: "s", Calls: []*conformance.Call{{Name: "c", Answer: test.want}}}
		var paths []string
		for _, d := range conformance.Compare(s, []*conformance.Answer{test.got}) {
			paths = append(paths, d.Path)
		}
		assert.Equal(t, test.paths, paths, test.name)
	}
}

func TestADifferenceHasTheRecordedValueAndTheOther(t *testing.T) {
	type object = map[string]any
	compare := func(want, got *conformance.Answer) []conformance.Difference {
		return conformance.Compare(&conformance.Scenario{Name: "s", Calls: []*conformance.Call{{Name: "c", Answer: want}}}, []*conformance.Answer{got})
	}
	assert.Equal(t, []conformance.Difference{
		{Scenario: "s", Call: "c", Path: "body/a", Want: "1", Got: "absent"},
		{Scenario: "s", Call: "c", Path: "body/b", Want: "absent", Got: `"x"`},
		{Scenario: "s", Call: "c", Path: "body/c", Want: "2", Got: "3"},
	}, compare(answer(200, object{"a": 1.0, "c": 2.0}), answer(200, object{"b": "x", "c": 3.0})))
	failed := compare(answer(200, nil), answer(409, object{"kind": "Status", "message": "no"}))
	require.Len(t, failed, 1)
	assert.Contains(t, failed[0].Want, "200")
	assert.Equal(t, `409 "no"`, failed[0].Got)
}

func TestExplainFindsUnlistedAndStaleDifferences(t *testing.T) {
	rules, err := conformance.ParseRules(`# comment
== one
s/* @ body/a
s/c @ body/b/**
== two
s/c @ body/*/x
s/c @ body/gone
`)
	require.NoError(t, err)
	at := func(call, path string) conformance.Difference {
		return conformance.Difference{Scenario: "s", Call: call, Path: path}
	}
	reasons, stale := conformance.Explain(rules, []conformance.Difference{
		at("c", "body/a"), at("d", "body/a"), at("c", "body/b/x"), at("c", "body/b"), at("c", "body/0/x"), at("c", "body/new"), at("d", "body/b"),
	})
	assert.Equal(t, []string{"one", "one", "one", "one", "two", "", ""}, reasons)
	assert.Equal(t, []conformance.Rule{{Reason: "two", Call: "s/c", Path: "body/gone"}}, stale)
}

func TestInvalidRulesAreErrors(t *testing.T) {
	for _, text := range []string{"s/c @ body", "== one\ns/c body", "== one\ns/[c @ body"} {
		_, err := conformance.ParseRules(text)
		assert.Error(t, err, text)
	}
}
