package fake

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// behaviorOptions are the options of the text of a Behavior.
var behaviorOptions = []option[Behavior]{
	duration("queue", func(b *Behavior) *time.Duration { return &b.QueueDelay }),
	duration("start", func(b *Behavior) *time.Duration { return &b.StartDelay }),
	{name: "fail", format: formatFailure, parse: parseFailure},
	{name: "exit", format: formatExit, parse: parseExit},
	{name: "oom", format: formatOOM, parse: parseOOM},
	exitOption(text("reason", func(e *Exit) *string { return &e.Reason })),
	exitOption(text("message", func(e *Exit) *string { return &e.Message })),
	exitOption(number("crashes", math.MaxInt32, func(e *Exit) *int { return &e.Crashes })),
	duration("stop", func(b *Behavior) *time.Duration { return &b.StopDelay }),
	number("stopCode", 255, func(b *Behavior) *int32 { return &b.StopCode }),
	flag("ignoreTERM", func(b *Behavior) *bool { return &b.IgnoreTERM }),
	duration("ready", func(b *Behavior) *time.Duration { return &b.ReadyAfter }),
	flag("neverReady", func(b *Behavior) *bool { return &b.NeverReady }),
	duration("flap", func(b *Behavior) *time.Duration { return &b.Flap }),
	duration("started", func(b *Behavior) *time.Duration { return &b.StartedAfter }),
	duration("unhealthy", func(b *Behavior) *time.Duration { return &b.UnhealthyAfter }),
	flag("liveness", func(b *Behavior) *bool { return &b.Liveness }),
	{name: "evict", format: func(b *Behavior) []string { return optional(b.EvictAfter != 0, formatAt(b.EvictAfter)) }, parse: parseEvict},
	number("version", math.MaxInt32, func(b *Behavior) *int { return &b.Version }),
	list("log", func(b *Behavior) *[]LogLine { return &b.Logs }, text("", func(l *LogLine) *string { return &l.Text }), func(l *LogLine) *time.Duration { return &l.After }, logOptions, always),
	endpoints("http", true),
	endpoints("tcp", false),
	curve("memory", maxBytes, func(b *Behavior) *Curve { return &b.Memory }),
	curve("cpu", maxCores, func(b *Behavior) *Curve { return &b.CPU }),
	curve("disk", maxBytes, func(b *Behavior) *Curve { return &b.Disk }),
	list("command", func(b *Behavior) *[]Command { return &b.Commands }, text("", func(c *Command) *string { return &c.Prefix }), nil, commandOptions, always),
}

// String returns the text of b, which [ParseBehavior] parses. Functions have no text.
func (b Behavior) String() string {
	options := format(&b, behaviorOptions)
	if len(options) == 0 {
		return run
	}
	return strings.Join(options, ",")
}

// run is the text of the zero Behavior.
const run = "run"

// ParseBehavior parses the text of a Behavior, which the package documentation specifies.
func ParseBehavior(text string) (Behavior, error) {
	words, err := split(text, separators)
	var b Behavior
	if err == nil {
		b, err = behaviorOf(words)
	}
	if err != nil {
		return Behavior{}, fmt.Errorf("fake: behavior %.80q: %w", text, err)
	}
	return b, nil
}

// separators separate options.
const separators = ", \t\n"

func behaviorOf(words []string) (b Behavior, err error) {
	if len(words) > 0 && words[0] == run {
		words = words[1:]
	}
	given, err := parse(&b, behaviorOptions, words)
	if err != nil {
		return b, err
	}
	has := func(name string) bool { return slices.Contains(given, name) }
	switch {
	case has("exit") && has("oom"):
		err = errors.New("exit and oom exclude each other")
	case b.Exit != nil && !has("exit") && !has("oom"):
		err = errors.New("reason, message and crashes require exit or oom")
	case b.NeverReady && (has("flap") || has("ready")):
		err = errors.New("neverReady excludes ready and flap")
	case has("flap") && b.Flap < time.Millisecond:
		err = errors.New("flap: less than 1ms")
	}
	ports := map[int32]bool{}
	for _, e := range b.Endpoints {
		if ports[e.Port] {
			err = fmt.Errorf("duplicate port %d", e.Port)
		}
		if ports[e.Port] = true; e.UnreadyAfter != 0 && e.UnreadyAfter <= e.ReadyAfter {
			err = fmt.Errorf("until: %v is not after %v", e.UnreadyAfter, e.ReadyAfter)
		}
	}
	for i, l := range b.Logs {
		switch {
		case strings.ContainsRune(l.Text, '\n'):
			err = fmt.Errorf("log %q: want a text without newline", l.Text)
		case l.Every > 0 && l.Every < time.Millisecond:
			err = fmt.Errorf("log %q: every: less than 1ms", l.Text)
		case l.Times > 1 && l.Every == 0:
			err = fmt.Errorf("log %q: times requires every", l.Text)
		case l.Endless() && i < len(b.Logs)-1:
			err = fmt.Errorf("log %q has every and no times, so the lines after it are never printed", l.Text)
		}
	}
	return b, err
}

// Check returns an error if a field of b is out of range or excludes another.
func (b Behavior) Check() error {
	_, err := ParseBehavior(b.String())
	return err
}

// Only returns an error if b has an option, by its name in the text, that is not listed. A
// runtime that ignores the other options returns it to its user.
func (b Behavior) Only(options ...string) error {
	for i := range behaviorOptions {
		if o := &behaviorOptions[i]; !slices.Contains(options, o.name) && len(o.format(&b)) > 0 {
			return fmt.Errorf("behavior %.80q: %s is not supported; want %s", b.String(), o.name, strings.Join(options, ", "))
		}
	}
	return nil
}

func formatFailure(b *Behavior) []string {
	f := b.Fail
	if f == nil {
		return nil
	}
	reason := f.Reason
	if f.Message != "" {
		reason += ": " + f.Message
	}
	return []string{"=" + quote(reason) + formatAt(f.For)}
}

func formatAt(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return "@" + formatDuration(d)
}

func parseFailure(b *Behavior, a argument) error {
	reason, message, _ := strings.Cut(a.value, ": ")
	b.Fail = &Failure{Reason: reason, Message: message, For: a.at}
	if reason == "" {
		return errors.New("want a reason: fail=CreateContainerError")
	}
	return a.only(true, true)
}

func parseEvict(b *Behavior, a argument) error {
	b.EvictAfter = a.at
	if a.at == 0 {
		return errors.New("want a time: evict@5s")
	}
	return a.only(false, true)
}

func formatExit(b *Behavior) []string {
	if b.Exit == nil || b.Exit.oom() {
		return nil
	}
	return []string{fmt.Sprintf("=%d%s", b.Exit.Code, formatAt(b.Exit.After))}
}

func (e *Exit) oom() bool { return e.Code == 137 && e.Reason == OOMKilled }

func parseExit(b *Behavior, a argument) error {
	code, err := parseNumber[int32](a.value, 255)
	e := b.exit()
	e.Code, e.After = code, a.at
	return errors.Join(a.only(true, true), err)
}

func formatOOM(b *Behavior) []string {
	if b.Exit == nil || !b.Exit.oom() {
		return nil
	}
	return []string{formatAt(b.Exit.After)}
}

func parseOOM(b *Behavior, a argument) error {
	e := b.exit()
	e.Code, e.After, e.Reason = 137, a.at, OOMKilled
	return a.only(false, true)
}

// exit returns b.Exit, which it allocates if it is nil.
func (b *Behavior) exit() *Exit {
	if b.Exit == nil {
		b.Exit = new(Exit)
	}
	return b.Exit
}

// exitOption is an option of an Exit. The reason of oom has none.
func exitOption(o option[Exit]) option[Behavior] {
	return option[Behavior]{
		name: o.name,
		format: func(b *Behavior) []string {
			if b.Exit == nil || o.name == "reason" && b.Exit.oom() {
				return nil
			}
			return o.format(b.Exit)
		},
		parse: func(b *Behavior, a argument) error { return o.parse(b.exit(), a) },
	}
}

// list is an option for each element of a slice: its value, its time if at is not nil, and
// options. Elements that another option formats are not elements of it.
func list[T, E any](name string, field func(*T) *[]E, value option[E], at func(*E) *time.Duration, options []option[E], is func(*E) bool) option[T] {
	return option[T]{
		name: name, many: true,
		format: func(v *T) (out []string) {
			elements := *field(v)
			for i := range elements {
				e := &elements[i]
				if !is(e) {
					continue
				}
				text := "=" + quote("")
				if values := value.format(e); len(values) > 0 {
					text = values[0]
				}
				if at != nil {
					text += formatAt(*at(e))
				}
				out = append(out, strings.Join(append([]string{text}, format(e, options)...), ";"))
			}
			return out
		},
		parse: func(v *T, a argument) error {
			var e E
			err := value.parse(&e, argument{value: a.value, hasValue: a.hasValue})
			if at != nil {
				*at(&e) = a.at
			} else if a.hasAt {
				err = errors.Join(err, errors.New("unexpected time"))
			}
			if err == nil {
				_, err = parse(&e, options, a.options)
			}
			*field(v) = append(*field(v), e)
			return err
		},
	}
}

func always[E any](*E) bool { return true }

var logOptions = []option[LogLine]{
	duration("every", func(l *LogLine) *time.Duration { return &l.Every }),
	number("times", math.MaxInt32, func(l *LogLine) *int { return &l.Times }),
	flag("stderr", func(l *LogLine) *bool { return &l.Err }),
}

var endpointOptions = []option[Endpoint]{
	duration("until", func(e *Endpoint) *time.Duration { return &e.UnreadyAfter }),
}

// endpoints is an option for the endpoints with or without HTTP.
func endpoints(name string, http bool) option[Behavior] {
	return list(name, func(b *Behavior) *[]Endpoint { return &b.Endpoints }, option[Endpoint]{
		format: func(e *Endpoint) []string { return []string{fmt.Sprintf("=%d", e.Port)} },
		parse: func(e *Endpoint, a argument) (err error) {
			e.HTTP = http
			e.Port, err = parseNumber[int32](a.value, math.MaxUint16)
			return err
		},
	}, func(e *Endpoint) *time.Duration { return &e.ReadyAfter }, endpointOptions, func(e *Endpoint) bool { return e.HTTP == http })
}

var commandOptions = []option[Command]{
	text("stdout", func(c *Command) *string { return &c.Stdout }),
	text("stderr", func(c *Command) *string { return &c.Stderr }),
	number("code", 255, func(c *Command) *int32 { return &c.ExitCode }),
	duration("takes", func(c *Command) *time.Duration { return &c.Takes }),
	number("fails", math.MaxInt32, func(c *Command) *int { return &c.Fails }),
	flag("echo", func(c *Command) *bool { return &c.Echo }),
}

// imageOptions are the options of the text of an Image.
var imageOptions = []option[Image]{
	list("layer", func(i *Image) *[]Layer { return &i.Layers }, option[Layer]{
		format: func(l *Layer) []string { return []string{fmt.Sprintf("=%d", l.Size)} },
		parse: func(l *Layer, a argument) error {
			size, err := parseQuantity(a.value, maxBytes)
			if l.Size = uint64(size); err == nil && l.Size == 0 {
				err = errors.New("a layer has at least one byte")
			}
			return err
		},
	}, nil, []option[Layer]{text("name", func(l *Layer) *string { return &l.Name })}, always),
	duration("pull", func(i *Image) *time.Duration { return &i.PullTime }),
	text("error", func(i *Image) *string { return &i.PullError }),
	number("fails", math.MaxInt32, func(i *Image) *int { return &i.PullFails }),
	flag("absent", func(i *Image) *bool { return &i.Absent }),
	text("auth", func(i *Image) *string { return &i.Auth }),
	text("user", func(i *Image) *string { return &i.User }),
	flag("present", func(i *Image) *bool { return &i.Present }),
	flag("pinned", func(i *Image) *bool { return &i.Pinned }),
}

// String returns the text of i, as in a [Script].
func (i Image) String() string { return strings.Join(format(&i, imageOptions), ",") }

// Check returns an error if a field of i is out of range.
func (i Image) Check() error {
	words, err := split(i.String(), separators)
	if err != nil {
		return err
	}
	_, err = imageOf(words)
	return err
}

func imageOf(words []string) (i Image, err error) {
	if _, err := parse(&i, imageOptions, words); err != nil {
		return i, err
	}
	if i.Auth != "" && !strings.Contains(i.Auth, ":") {
		return i, errors.New("auth is not user:password")
	}
	names := map[string]bool{}
	for _, l := range i.Layers {
		if l.Name != "" && names[l.Name] {
			return i, fmt.Errorf("duplicate layer %q", l.Name)
		}
		names[l.Name] = true
	}
	return i, nil
}
