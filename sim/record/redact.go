package record

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"reflect"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// maskPrefix begins each masked value.
const maskPrefix = "masked:"

// A redactor masks secrets. A masked value is a keyed hash, whose key is not written: equal values of
// a recording have equal masks, and a value cannot be guessed from its mask. It is not safe for
// concurrent use.
type redactor struct {
	key   []byte
	texts scrubber
}

func newRedactor() *redactor {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails
	return &redactor{key: key}
}

// mask returns the mask of a value. That of the empty value is empty.
func (r *redactor) mask(value string) string {
	if value == "" {
		return value
	}
	mac := hmac.New(sha256.New, r.key)
	mac.Write([]byte(value))
	m := maskPrefix + hex.EncodeToString(mac.Sum(nil)[:6])
	r.texts.add(value, m)
	return m
}

// message masks the fields in redactedFields of m and of the messages in it.
func (r *redactor) message(m protoreflect.Message) {
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		action := redactedFields[string(field.FullName())]
		switch {
		case action != keep && field.IsMap():
			value.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
				value.Map().Set(k, protoreflect.ValueOfString(r.annotation(action, k.String(), v.String())))
				return true
			})
		case action != keep && field.IsList():
			for i := range value.List().Len() {
				value.List().Set(i, protoreflect.ValueOfString(r.mask(value.List().Get(i).String())))
			}
		case action == scrub:
			m.Set(field, protoreflect.ValueOfString(r.texts.scrub(value.String())))
		case action == mask && field.Kind() == protoreflect.BytesKind:
			m.Set(field, protoreflect.ValueOfBytes([]byte(r.mask(string(value.Bytes())))))
		case action == mask:
			m.Set(field, protoreflect.ValueOfString(r.mask(value.String())))
		case field.IsMap() && field.MapValue().Message() != nil:
			value.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
				r.message(v.Message())
				return true
			})
		case field.IsList() && field.Message() != nil:
			for i := range value.List().Len() {
				r.message(value.List().Get(i).Message())
			}
		case !field.IsMap() && !field.IsList() && field.Message() != nil:
			r.message(value.Message())
		}
		return true
	})
}

// redactMessage masks a message of the CRI in place.
func (r *redactor) redactMessage(m proto.Message) { r.message(m.ProtoReflect()) }

// pod returns a copy of a pod with masked values, without managed fields.
func (r *redactor) pod(pod *v1.Pod) *v1.Pod {
	out := pod.DeepCopy()
	out.ManagedFields = nil
	r.value(reflect.ValueOf(out).Elem())
	return out
}

// status returns a copy of a status with masked values.
func (r *redactor) status(s *v1.PodStatus) *v1.PodStatus {
	out := s.DeepCopy()
	r.value(reflect.ValueOf(out).Elem())
	return out
}

// value masks the fields in redactedFields of a value and of the structs in it.
func (r *redactor) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			r.value(v.Elem())
		}
	case reflect.Slice, reflect.Array:
		if mayContainStruct(v.Type().Elem()) {
			for i := range v.Len() {
				r.value(v.Index(i))
			}
		}
	case reflect.Struct:
		if opaque[v.Type()] {
			return
		}
		for i := range v.NumField() {
			switch action := redactedFields[goField(v.Type(), i)]; {
			case action != keep:
				r.field(action, v.Field(i))
			case v.Type().Field(i).IsExported():
				r.value(v.Field(i))
			}
		}
	}
}

// field masks a string, a pointer to a string, a list of strings or a map of strings.
func (r *redactor) field(action action, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			r.field(action, v.Elem())
		}
	case reflect.String:
		if action == scrub {
			v.SetString(r.texts.scrub(v.String()))
		} else {
			v.SetString(r.mask(v.String()))
		}
	case reflect.Slice:
		for i := range v.Len() {
			r.field(action, v.Index(i))
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			v.SetMapIndex(k, reflect.ValueOf(r.annotation(action, k.String(), v.MapIndex(k).String())))
		}
	}
}

// annotation returns the masked value of a map, except for keys in keptAnnotations.
func (r *redactor) annotation(action action, key, value string) string {
	if action == annotations && slices.Contains(keptAnnotations, key) {
		return value
	}
	return r.mask(value)
}

// mayContainStruct avoids visiting the bytes of large slices.
func mayContainStruct(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct, reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Array:
		return true
	}
	return false
}

// goField returns the name of a field in redactedFields: "v1.EnvVar.Value".
func goField(t reflect.Type, i int) string { return t.String() + "." + t.Field(i).Name }

// opaque are types of numbers and times, which have no fields of their own in the API.
var opaque = map[reflect.Type]bool{
	reflect.TypeFor[metav1.Time](): true, reflect.TypeFor[metav1.MicroTime](): true, reflect.TypeFor[resource.Quantity](): true,
}
