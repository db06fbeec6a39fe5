package apitest

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEqualPartsAreShared(t *testing.T) {
	var in any
	const schema = `{"type":"object","properties":{"a":{"type":"string","enum":["x",1,1.5,true,null]},"b":{"type":"string","enum":["x",1,1.5,true,null]}}}`
	require.NoError(t, json.Unmarshal([]byte(`{"v1":`+schema+`,"v2":`+schema+`,"other":{"type":"object","properties":{}},"empty":{},"list":[]}`), &in))
	out := newSharer().tree(in).(map[string]any)
	assert.Equal(t, in, out)
	v1, v2 := out["v1"].(map[string]any), out["v2"].(map[string]any)
	assert.True(t, sameMap(v1, v2))
	properties := v1["properties"].(map[string]any)
	assert.True(t, sameMap(properties["a"], properties["b"]))
	assert.False(t, sameMap(out["other"], v1))

	parser := propertyParser{}
	one, err := parser.parse(v1)
	require.NoError(t, err)
	other, err := parser.parse(v2)
	require.NoError(t, err)
	assert.Same(t, one, other)
	assert.Same(t, one.Properties["a"], one.Properties["b"])
	assert.Equal(t, []string{"x", "1", "1.5", "true", "<nil>"}, one.Properties["a"].Enum)
}

// FuzzSharedTreesAreEqual shares the parts of any JSON.
func FuzzSharedTreesAreEqual(f *testing.F) {
	f.Add(`{"a":[1,"1",{"b":null}],"c":[1,"1",{"b":null}],"d":[[],{},"",0,false]}`)
	f.Fuzz(func(t *testing.T, text string) {
		var in any
		if json.Unmarshal([]byte(text), &in) != nil {
			return
		}
		if out := newSharer().tree(in); !reflect.DeepEqual(in, out) {
			t.Fatalf("%#v became %#v", in, out)
		}
	})
}
