package criproxy

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "k8s.io/cri-api/pkg/apis/runtime/v1" // registers the descriptors
)

// Decode returns a message of a method, such as "/runtime.v1.RuntimeService/Version", as
// values of JSON: maps, slices, strings, booleans, and int64, uint64 or float64. Keys are the
// names of the CRI's fields; fields with default values are omitted, bytes are strings, and
// enumerations are names. Unknown fields are an error: the message would be incomplete.
func Decode(method string, data []byte, response bool) (map[string]any, error) {
	of, err := descriptor(method)
	if err != nil {
		return nil, err
	}
	name := of.Input().FullName()
	if response {
		name = of.Output().FullName()
	}
	kind, err := protoregistry.GlobalTypes.FindMessageByName(name)
	if err != nil {
		return nil, fmt.Errorf("criproxy: message %s: %w", name, err)
	}
	m := kind.New()
	if err := proto.Unmarshal(data, m.Interface()); err != nil {
		return nil, fmt.Errorf("criproxy: message %s: %w", name, err)
	}
	return fields(m)
}

func descriptor(method string) (protoreflect.MethodDescriptor, error) {
	name := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", "."))
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	if err != nil {
		return nil, fmt.Errorf("criproxy: method %s: %w", method, err)
	}
	of, ok := found.(protoreflect.MethodDescriptor)
	if !ok {
		return nil, fmt.Errorf("criproxy: %s is not a method", method)
	}
	return of, nil
}

// streams reports whether a method returns a stream. Unknown methods do not.
func streams(method string) bool {
	of, err := descriptor(method)
	return err == nil && of.IsStreamingServer()
}

func fields(m protoreflect.Message) (out map[string]any, err error) {
	if unknown := m.GetUnknown(); len(unknown) > 0 {
		return nil, fmt.Errorf("criproxy: message %s has %d bytes of unknown fields", m.Descriptor().FullName(), len(unknown))
	}
	out = map[string]any{}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		var value any
		switch {
		case f.IsMap():
			entries := map[string]any{}
			v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
				entries[k.String()], err = scalar(f.MapValue(), v)
				return err == nil
			})
			value = entries
		case f.IsList():
			var items []any
			for i := 0; i < v.List().Len() && err == nil; i++ {
				var item any
				item, err = scalar(f, v.List().Get(i))
				items = append(items, item)
			}
			value = items
		default:
			value, err = scalar(f, v)
		}
		out[string(f.Name())] = value
		return err == nil
	})
	return out, err
}

// scalar returns a value that is neither a list nor a map.
func scalar(f protoreflect.FieldDescriptor, v protoreflect.Value) (any, error) {
	switch f.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return fields(v.Message())
	case protoreflect.EnumKind:
		if of := f.Enum().Values().ByNumber(v.Enum()); of != nil {
			return string(of.Name()), nil
		}
		return int64(v.Enum()), nil
	case protoreflect.BytesKind:
		return string(v.Bytes()), nil
	case protoreflect.Int32Kind, protoreflect.Int64Kind, protoreflect.Sint32Kind, protoreflect.Sint64Kind, protoreflect.Sfixed32Kind, protoreflect.Sfixed64Kind:
		return v.Int(), nil
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind, protoreflect.Fixed32Kind, protoreflect.Fixed64Kind:
		return v.Uint(), nil
	}
	return v.Interface(), nil // boolean, string, floating point
}
