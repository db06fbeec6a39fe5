package volume

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// The loop decides nothing: what is done next follows from these.
func TestNextStep(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	soon, past := now.Add(time.Second), now.Add(-time.Second)
	device := func(state state, change ...func(*deviceInput)) *deviceInput {
		d := &deviceInput{state: state, users: 1}
		for _, f := range change {
			f(d)
		}
		return d
	}
	for name, c := range map[string]struct {
		input stepInput
		want  step
		at    time.Time
	}{
		"wanted":                       {stepInput{desired: true}, setUp, time.Time{}},
		"wanted, uncertain (vol-32)":   {stepInput{desired: true, state: uncertain}, setUp, time.Time{}},
		"busy (vol-19)":                {stepInput{desired: true, busy: true}, noStep, time.Time{}},
		"busy and not wanted":          {stepInput{state: inPlace, busy: true}, noStep, time.Time{}},
		"in back-off":                  {stepInput{desired: true, notBefore: soon}, noStep, soon},
		"after back-off":               {stepInput{desired: true, notBefore: past}, setUp, time.Time{}},
		"back-off ends now":            {stepInput{desired: true, notBefore: now}, setUp, time.Time{}},
		"mounted":                      {stepInput{desired: true, state: inPlace}, noStep, time.Time{}},
		"mounted, to refresh (vol-11)": {stepInput{desired: true, state: inPlace, refresh: true}, refresh, time.Time{}},
		"refresh in back-off":          {stepInput{desired: true, state: inPlace, refresh: true, notBefore: soon}, noStep, soon},
		"refresh by the clock later":   {stepInput{desired: true, state: inPlace, refreshAt: soon}, noStep, soon},
		"refresh by the clock now":     {stepInput{desired: true, state: inPlace, refreshAt: now}, refresh, time.Time{}},
		"too small (vol-16)":           {stepInput{desired: true, state: inPlace, grow: true}, expand, time.Time{}},
		"too small, in back-off":       {stepInput{desired: true, state: inPlace, grow: true, notBefore: soon}, noStep, soon},
		"refresh comes before growth":  {stepInput{desired: true, state: inPlace, grow: true, refresh: true}, refresh, time.Time{}},
		"not attached (vol-17)":        {stepInput{desired: true, attach: true, attachBy: soon}, noStep, soon},
		"attached too late (vol-20)":   {stepInput{desired: true, attach: true, attachBy: past}, late, time.Time{}},
		"attached":                     {stepInput{desired: true, attach: true, attached: true, attachBy: past}, setUp, time.Time{}},
		"not staged (vol-20)":          {stepInput{desired: true, device: device(notMounted)}, stage, time.Time{}},
		"maybe staged":                 {stepInput{desired: true, device: device(uncertain)}, stage, time.Time{}},
		"being staged":                 {stepInput{desired: true, device: device(notMounted, func(d *deviceInput) { d.busy = true })}, noStep, time.Time{}},
		"staging in back-off":          {stepInput{desired: true, device: device(uncertain, func(d *deviceInput) { d.notBefore = soon })}, noStep, soon},
		"staged":                       {stepInput{desired: true, device: device(inPlace)}, setUp, time.Time{}},
		"staged, not attached":         {stepInput{desired: true, attach: true, attachBy: soon, device: device(inPlace)}, noStep, soon},
		"staged with another label":    {stepInput{desired: true, device: device(inPlace, func(d *deviceInput) { d.mislabeled = true })}, unstage, time.Time{}},
		"maybe with another label":     {stepInput{desired: true, device: device(uncertain, func(d *deviceInput) { d.mislabeled = true })}, unstage, time.Time{}},
		"another label, in back-off":   {stepInput{desired: true, device: device(uncertain, func(d *deviceInput) { d.mislabeled, d.notBefore = true, soon })}, noStep, soon},
		"another label, mounted":       {stepInput{desired: true, state: inPlace, device: device(inPlace, func(d *deviceInput) { d.mislabeled = true })}, noStep, time.Time{}},
		"not wanted, mounted (vol-23)": {stepInput{state: inPlace}, tearDown, time.Time{}},
		"not wanted, uncertain":        {stepInput{state: uncertain}, tearDown, time.Time{}},
		"not wanted, in back-off":      {stepInput{state: uncertain, notBefore: soon}, noStep, soon},
		"not wanted, to refresh":       {stepInput{state: inPlace, refresh: true}, tearDown, time.Time{}},
		"not wanted, detached":         {stepInput{state: inPlace, attach: true}, tearDown, time.Time{}},
		"gone":                         {stepInput{}, forget, time.Time{}},
	} {
		got, at := next(c.input, now)
		assert.Equal(t, c.want, got, name)
		assert.Equal(t, c.at, at, name)
	}
	for name, c := range map[string]struct {
		input deviceInput
		want  step
		at    time.Time
	}{
		"used":                  {deviceInput{state: inPlace, users: 1}, noStep, time.Time{}},
		"let go of (vol-24)":    {deviceInput{state: inPlace}, unstage, time.Time{}},
		"maybe staged":          {deviceInput{state: uncertain}, unstage, time.Time{}},
		"busy":                  {deviceInput{state: uncertain, busy: true}, noStep, time.Time{}},
		"unstaging in back-off": {deviceInput{state: uncertain, notBefore: soon}, noStep, soon},
		"gone":                  {deviceInput{}, forget, time.Time{}},
	} {
		got, at := nextDevice(c.input, now)
		assert.Equal(t, c.want, got, name)
		assert.Equal(t, c.at, at, name)
	}
}

// Section 6.1: 500 ms, doubled, at most 2m2s; another step starts over.
func TestBackoff(t *testing.T) {
	now := time.Now()
	var f failure
	var delays []time.Duration
	for range 10 {
		f = f.after(setUp, errors.New("x"), now)
		delays = append(delays, f.delay)
		assert.Equal(t, now.Add(f.delay), f.notBefore)
	}
	s := time.Second
	assert.Equal(t, []time.Duration{s / 2, s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 64 * s, 122 * s, 122 * s}, delays)
	assert.Equal(t, s/2, f.after(tearDown, errors.New("x"), now).delay)
}
