package record

import (
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Each field with a text, of any message of the CRI and of a pod, is masked or has been reviewed. A
// reviewer adds the field of a failure to redactedFields if it may contain a secret, and otherwise to
// testdata/reviewed.txt.
func TestEachTextFieldIsReviewed(t *testing.T) {
	texts := map[string]bool{}
	messages := new(runtimeapi.KeyValue).ProtoReflect().Descriptor().ParentFile().Messages()
	for i := range messages.Len() {
		messageTexts(messages.Get(i), texts)
	}
	podTexts(reflect.TypeFor[v1.Pod](), texts, map[reflect.Type]bool{})
	require.Greater(t, len(texts), 400)

	data, err := os.ReadFile("testdata/reviewed.txt")
	require.NoError(t, err)
	reviewed := strings.Fields(string(data))
	assert.True(t, slices.IsSorted(reviewed), "testdata/reviewed.txt is sorted")
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		_, masked := redactedFields[name]
		kept := slices.Contains(reviewed, name)
		if !masked && !kept {
			t.Errorf("%s is not reviewed: may it contain a secret?", name)
		}
		assert.False(t, masked && kept, "%s is masked and reviewed as harmless", name)
	}
	for _, name := range append(slices.Collect(maps.Keys(redactedFields)), reviewed...) {
		assert.True(t, texts[name], "%s does not exist", name)
	}
}

// messageTexts adds the text fields of a message and of the messages declared in it.
func messageTexts(m protoreflect.MessageDescriptor, texts map[string]bool) {
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		kind := f.Kind()
		if f.IsMap() {
			kind = f.MapValue().Kind()
		}
		if kind == protoreflect.StringKind || kind == protoreflect.BytesKind {
			texts[string(f.FullName())] = true
		}
	}
	for i := range m.Messages().Len() {
		if n := m.Messages().Get(i); !n.IsMapEntry() {
			messageTexts(n, texts)
		}
	}
}

// podTexts adds the text fields of a type and of the types in it.
func podTexts(t reflect.Type, texts map[string]bool, visited map[reflect.Type]bool) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		podTexts(t.Elem(), texts, visited)
	case reflect.Struct:
		if visited[t] || opaque[t] {
			return
		}
		visited[t] = true
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Name == "ManagedFields" || !f.IsExported() {
				continue
			}
			if isText(f.Type) {
				texts[goField(t, i)] = true
			}
			podTexts(f.Type, texts, visited)
		}
	}
}

// isText reports whether values of a type are strings or bytes, or contain them directly.
func isText(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String:
		return true
	case reflect.Slice:
		return t.Elem().Kind() == reflect.Uint8 || isText(t.Elem())
	case reflect.Pointer, reflect.Map:
		return isText(t.Elem())
	}
	return false
}

// Every text of a message that is to be masked is masked: the fields in the table are set to a
// marker, at any depth.
func TestEachFieldOfTheTableIsMasked(t *testing.T) {
	r := newRedactor()
	messages := new(runtimeapi.KeyValue).ProtoReflect().Descriptor().ParentFile().Messages()
	for i := range messages.Len() {
		desc := messages.Get(i)
		for j := range desc.Fields().Len() {
			f := desc.Fields().Get(j)
			if a := redactedFields[string(f.FullName())]; a != mask && a != annotations {
				continue
			}
			m := dynamicpb.NewMessage(desc)
			fill(m, f)
			r.message(m)
			text := prototext.Format(m.Interface()) // bytes as text
			assert.NotContains(t, text, marker, f.FullName())
			assert.Contains(t, text, maskPrefix, f.FullName())
		}
	}
}

const marker = "MARKER-secret"

// fill sets a field to the marker.
func fill(m protoreflect.Message, f protoreflect.FieldDescriptor) {
	switch {
	case f.IsMap():
		m.Mutable(f).Map().Set(protoreflect.ValueOfString("key").MapKey(), protoreflect.ValueOfString(marker))
	case f.IsList():
		m.Mutable(f).List().Append(protoreflect.ValueOfString(marker))
	case f.Kind() == protoreflect.BytesKind:
		m.Set(f, protoreflect.ValueOfBytes([]byte(marker)))
	default:
		m.Set(f, protoreflect.ValueOfString(marker))
	}
}

func TestMasks(t *testing.T) {
	a, b := newRedactor(), newRedactor()
	assert.Equal(t, a.mask("secret"), a.mask("secret"))
	assert.NotEqual(t, a.mask("secret"), a.mask("secret2"))
	assert.NotEqual(t, a.mask("secret"), b.mask("secret"), "each recording has its key")
	assert.Empty(t, a.mask(""))
	assert.NotContains(t, a.mask("masked:secret"), "secret", "a value may look like a mask")

	m := a.mask("--password=hunter22")
	assert.Equal(t, `exec "`+m+`": not found`, a.texts.scrub(`exec "--password=hunter22": not found`))
	a.mask("true")
	assert.Equal(t, "true", a.texts.scrub("true"), "short values occur in other words")
	a.mask("hunter22")
	assert.Equal(t, m, a.texts.scrub("--password=hunter22"), "the longest value wins")
	for i := range 3 * mostScrubbed {
		a.mask(strings.Repeat("x", 10) + string(rune('a'+i%26)) + strings.Repeat("y", i/26))
	}
	assert.LessOrEqual(t, len(a.texts.recent)+len(a.texts.earlier), 2*mostScrubbed)
}

func TestAPodIsNotModified(t *testing.T) {
	pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Env: []v1.EnvVar{{Name: "A", Value: marker}}}}}}
	out := newRedactor().pod(pod)
	assert.Equal(t, marker, pod.Spec.Containers[0].Env[0].Value)
	assert.True(t, strings.HasPrefix(out.Spec.Containers[0].Env[0].Value, maskPrefix))
}
