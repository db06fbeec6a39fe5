package apiserver

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

func TestEqualPartsOfSchemasAreShared(t *testing.T) {
	const pod = `{"type":"object","required":["name"],"properties":{"name":{"type":"string","maxLength":3,"default":"x"},"ports":{"type":"array","items":{"type":"integer","minimum":1.5}}}}`
	const text = `{"type":"object","properties":{"one":` + pod + `,"two":` + pod + `,"three":{"type":"array","items":` + pod + `},"four":{"type":"object","properties":{}},
		"five":{"additionalProperties":false,"enum":["1",1,null],"x-kubernetes-validations":[{"rule":"true"}]},"six":{"enum":[1,"1",null]}}}`
	var in, want spec.Schema
	require.NoError(t, json.Unmarshal([]byte(text), &in))
	require.NoError(t, json.Unmarshal([]byte(text), &want))
	newSharer().share(&in)
	assert.Equal(t, want, in)
	at := func(v any) uintptr { return reflect.ValueOf(v).Pointer() }
	one, two, three := in.Properties["one"], in.Properties["two"], in.Properties["three"]
	assert.Equal(t, at(one.Properties), at(two.Properties))
	assert.Equal(t, at(one.Properties), at(three.Items.Schema.Properties))
	assert.NotEqual(t, in.Properties["five"].Enum, in.Properties["six"].Enum)
	pointers := map[uintptr]int{}
	for _, p := range []spec.Schema{one, two} {
		pointers[at(p.Properties["name"].MaxLength)]++
	}
	assert.Len(t, pointers, 1)
}
