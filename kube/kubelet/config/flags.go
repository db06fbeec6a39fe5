package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/kubeparts/kubeparts/kube/node"
)

// isBool reports whether the field is a boolean, whose flag needs no value.
func (f field) isBool() bool { return f.kind() == reflect.Bool }

func (f field) kind() reflect.Kind {
	value, _ := f.value(new(kubeletconfig.KubeletConfiguration), true)
	of := value.Type()
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	return of.Kind()
}

// set sets the field of cfg to the value of the field's flag. Elements of lists are
// separated by commas, entries of maps too. If more is set, the flag was given before,
// and the entries of staticPodURLHeader and reservedMemory are added to those. It returns
// an error if the value is not one of the field.
func (f field) set(cfg *kubeletconfig.KubeletConfiguration, text string, more bool) error {
	switch f.name {
	case "staticPodURLHeader":
		return setHeader(&cfg.StaticPodURLHeader, text, more)
	case "reservedMemory":
		return setReservedMemory(&cfg.ReservedMemory, text, more)
	case "registerWithTaints":
		taints, err := node.ParseTaints(text)
		if err == nil {
			cfg.RegisterWithTaints = taints
		}
		return err
	}
	value, _ := f.value(cfg, true)
	object, err := f.object(value.Type(), text)
	into := reflect.New(value.Type())
	if err == nil {
		err = yaml.UnmarshalStrict(object, into.Interface())
	}
	if err != nil {
		return fmt.Errorf("want %s", expected[f.kind()])
	}
	value.Set(into.Elem())
	return nil
}

// expected describes the value of a flag, by the kind of its field. A struct is a
// duration.
var expected = map[reflect.Kind]string{
	reflect.Bool: "true or false", reflect.Int32: "a number", reflect.Int64: "a number", reflect.Float64: "a number",
	reflect.Struct: "a duration, such as 1m30s", reflect.Slice: "a list, separated by commas", reflect.Map: "key=value,…", reflect.String: "a string",
	reflect.Uint32: "a number",
}

// object returns the value as it would be in a file.
func (f field) object(of reflect.Type, text string) ([]byte, error) {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch of.Kind() {
	case reflect.Slice:
		if text == "" {
			return []byte("[]"), nil
		}
		return json.Marshal(strings.Split(text, ","))
	case reflect.Map:
		separator := "="
		if f.separator != "" {
			separator = f.separator
		}
		entries, err := pairs(text, separator)
		if err != nil {
			return nil, err
		}
		values := map[string]any{}
		for key, value := range entries {
			if values[key] = value; of.Elem().Kind() == reflect.Bool {
				values[key] = json.RawMessage(value)
			}
		}
		return json.Marshal(values)
	case reflect.String, reflect.Struct: // a struct is a duration
		return json.Marshal(text)
	}
	return []byte(text), nil
}

// pairs parses name=value,name=value, with any separator between name and value.
func pairs(text, separator string) (map[string]string, error) {
	entries := map[string]string{}
	if text == "" {
		return entries, nil
	}
	for pair := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(pair, separator)
		if key = strings.TrimSpace(key); !ok || key == "" {
			return nil, fmt.Errorf("%q is not NAME%sVALUE", pair, separator)
		}
		entries[key] = strings.TrimSpace(value)
	}
	return entries, nil
}

func setHeader(into *map[string][]string, text string, more bool) error {
	entries, err := pairs(text, ":")
	if err != nil {
		return err
	}
	if !more || *into == nil {
		*into = map[string][]string{}
	}
	for key, value := range entries {
		(*into)[key] = append((*into)[key], value)
	}
	return nil
}

// setReservedMemory parses "0:memory=1Gi,hugepages-2Mi=64Mi;1:memory=2Gi".
func setReservedMemory(into *[]kubeletconfig.MemoryReservation, text string, more bool) error {
	var all []kubeletconfig.MemoryReservation
	if more {
		all = slices.Clone(*into)
	}
	for part := range strings.SplitSeq(text, ";") {
		number, limits, ok := strings.Cut(part, ":")
		node, err := strconv.ParseInt(number, 10, 32)
		if !ok || err != nil || node < 0 || limits == "" {
			return fmt.Errorf("%q is not NODE:memory=AMOUNT,…", part)
		}
		if slices.ContainsFunc(all, func(r kubeletconfig.MemoryReservation) bool { return int64(r.NumaNode) == node }) {
			return fmt.Errorf("duplicate NUMA node %d", node)
		}
		amounts, err := pairs(limits, "=")
		if err != nil {
			return err
		}
		r := kubeletconfig.MemoryReservation{NumaNode: int32(node), Limits: map[v1.ResourceName]resource.Quantity{}}
		for name, amount := range amounts {
			q, err := resource.ParseQuantity(amount)
			if err != nil || q.Sign() < 0 || name != string(v1.ResourceMemory) && !strings.HasPrefix(name, v1.ResourceHugePagesPrefix) {
				return fmt.Errorf("%s=%s: want memory or hugepages-SIZE, and an amount", name, amount)
			}
			r.Limits[v1.ResourceName(name)] = q
		}
		all = append(all, r)
	}
	*into = all
	return nil
}

var (
	verbosityName   = regexp.MustCompile(`^--?v$`)
	verbosityNumber = regexp.MustCompile(`^[0-9]+$`)
	verbosityShort  = regexp.MustCompile(`^-v([0-9]+)$`)
)

// NormalizeArgs returns the arguments of a kubelet in a form that package flag parses:
// the kubelet also accepts the verbosity as "--v 4", "-v 4" and "-v4", and underscores in
// the names of flags.
func NormalizeArgs(args []string) []string {
	out := make([]string, 0, len(args))
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch short := verbosityShort.FindStringSubmatch(arg); {
		case arg == "--":
			return append(out, args[i:]...)
		case short != nil:
			arg = "--v=" + short[1]
		case verbosityName.MatchString(arg) && i+1 < len(args) && verbosityNumber.MatchString(args[i+1]):
			i++
			arg = "--v=" + args[i]
		case strings.HasPrefix(arg, "--"):
			name, value, hasValue := strings.Cut(arg, "=")
			if arg = strings.ReplaceAll(name, "_", "-"); hasValue {
				arg += "=" + value
			}
		}
		out = append(out, arg)
	}
	return out
}
