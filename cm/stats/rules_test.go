package stats_test

// Each rule of section 10.1 with the test that names it, or why none does.
var _ = map[string]string{
	"st-1":  "TestTheNodeItself, TestWhatTheRuntimeSaysOfAPod",
	"st-2":  "TestTheNodeItself",
	"st-3":  "TestCPUAndMemoryAlone",
	"st-4":  "TestWhatIsFresh, TestFreshDisksAndPods",
	"st-5":  "TestTheNodeItself, TestCgroupsFillInWhatTheRuntimeDoesNotSay",
	"st-6":  "TestWhatIsFresh",
	"st-7":  "TestTheNewestOfOneNameCounts",
	"st-8":  "TestTheNodeItself",
	"st-9":  "TestTheNodeItself",
	"st-10": "TestEphemeralStorage",
	"st-11": "TestTheNodeItself",
	"st-12": "TestWhatTheRuntimeSaysOfAPod",
	"st-13": "TestWhatTheRuntimeSaysOfAPod, TestCgroupsFillInWhatTheRuntimeDoesNotSay",
	"st-14": "TestTheNodeItself, TestCgroupsFillInWhatTheRuntimeDoesNotSay",
	"st-15": "of who serves it: examples/agent answers any method",
	"st-16": "the Prometheus endpoints (section 10.2, st-16 … st-19) are kube/server's, built on Summary",
}
