package config

import (
	"errors"
	"flag"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"
)

// AddFlags declares the kubelet's flags of fields of cfg, and those that have no effect,
// except flags that fs already has. Flags set fields of cfg, so that they take precedence
// over a file that was read before. After fs was parsed, check returns warnings about
// flags that have no effect, and an error about those that are refused.
//
// Arguments of a kubelet must be passed to [NormalizeArgs] before they are parsed.
func AddFlags(fs *flag.FlagSet, cfg *kubeletconfig.KubeletConfiguration) (check func() (warnings []string, err error)) {
	var given []func() (string, error)
	for f := range fields {
		if f.flag == "" || fs.Lookup(f.flag) != nil {
			continue
		}
		usage := f.doc
		if f.def != "" {
			usage += " (default " + f.def + ")"
		}
		fs.Var(&flagValue{boolean: f.isBool(), set: func(text string, more bool) error {
			if !more {
				given = append(given, func() (string, error) { return f.checkFlag(cfg) })
			}
			return f.set(cfg, text, more)
		}}, f.flag, map[effect]string{ignored: "no effect: ", refused: "refused: "}[f.effect]+usage)
	}
	for _, f := range ignoredFlags() {
		fs.Var(&flagValue{boolean: f.boolean, set: func(text string, _ bool) error {
			given = append(given, func() (string, error) { return f.check(text) })
			return nil
		}}, f.name, "no effect: "+f.reason)
	}
	return func() (warnings []string, err error) {
		for _, check := range given {
			warning, failed := check()
			err = errors.Join(err, failed)
			if warning != "" {
				warnings = append(warnings, warning)
			}
		}
		return warnings, err
	}
}

// A flagValue is a flag.Value that only sets.
type flagValue struct {
	boolean bool
	given   bool
	set     func(text string, more bool) error
}

func (f *flagValue) String() string   { return "" }
func (f *flagValue) IsBoolFlag() bool { return f.boolean }

func (f *flagValue) Set(text string) error {
	err := f.set(text, f.given)
	f.given = true
	return err
}
