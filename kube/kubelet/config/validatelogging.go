package config

import (
	"fmt"
	"math"
	"strings"

	fieldpath "k8s.io/apimachinery/pkg/util/validation/field"
)

// The feature gates of options of logging.
const (
	loggingAlphaGate = "LoggingAlphaOptions"
	loggingBetaGate  = "LoggingBetaOptions"
)

func (v validation) logging() (errs []error) {
	add := func(err *fieldpath.Error) { errs = append(errs, err) }
	c, path := v.k.Logging, fieldpath.NewPath("logging")
	if c.FlushFrequency.Duration.Duration <= 0 {
		add(fieldpath.Invalid(path.Child("flushFrequency"), c.FlushFrequency, "Must be greater than zero"))
	}
	switch {
	case c.Format != "text" && c.Format != "json":
		add(fieldpath.Invalid(path.Child("format"), c.Format, "Unsupported log format"))
	case c.Format == "json" && !v.gate(loggingBetaGate):
		add(fieldpath.Forbidden(path.Child("format"), fmt.Sprintf("Log format %s is disabled, see %s feature", c.Format, loggingBetaGate)))
	}
	if c.Verbosity > math.MaxInt32 {
		add(fieldpath.Invalid(path.Child("verbosity"), c.Verbosity, fmt.Sprintf("Must be <= %d", math.MaxInt32)))
	}
	modules := path.Child("vmodule")
	if len(c.VModule) > 0 && c.Format != "" && c.Format != "text" {
		add(fieldpath.Forbidden(modules, "Only supported for text log format"))
	}
	for i, item := range c.VModule {
		if item.FilePattern == "" {
			add(fieldpath.Required(modules.Index(i), "File pattern must not be empty"))
		}
		if strings.ContainsAny(item.FilePattern, "=,") {
			add(fieldpath.Invalid(modules.Index(i), item.FilePattern, "File pattern must not contain equal sign or comma"))
		}
		if item.Verbosity > math.MaxInt32 {
			add(fieldpath.Invalid(modules.Index(i), item.Verbosity, fmt.Sprintf("Must be <= %d", math.MaxInt32)))
		}
	}
	disabled := fmt.Sprintf("Feature %s is disabled", loggingAlphaGate)
	for name, o := range map[string]struct {
		split  bool
		buffer int64
	}{
		"text": {c.Options.Text.SplitStream, c.Options.Text.InfoBufferSize.Value()},
		"json": {c.Options.JSON.SplitStream, c.Options.JSON.InfoBufferSize.Value()},
	} {
		if o.split && !v.gate(loggingAlphaGate) {
			add(fieldpath.Forbidden(path.Child("options", name, "splitStream"), disabled))
		}
		if o.buffer != 0 && !v.gate(loggingAlphaGate) {
			add(fieldpath.Forbidden(path.Child("options", name, "infoBufferSize"), disabled))
		}
	}
	return errs
}
