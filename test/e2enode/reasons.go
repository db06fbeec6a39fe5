package main

import (
	_ "embed"

	"github.com/kubeparts/kubeparts/test/internal/reasons"
)

//go:embed differences.txt
var differencesText string

//go:embed not-measurable.txt
var notMeasurableText string

// differences are the explained differences.
func differences() []reasons.Reason { return reasons.Parse(differencesText) }

// notMeasurable are the tests that are not run. Labels are parts of the names of tests.
func notMeasurable() []reasons.Reason { return reasons.Parse(notMeasurableText) }
