package cri

import "github.com/kubeparts/kubeparts/runtime/cri/podconfig"

// What our objects carry is written and read in podconfig.
const (
	labelPodName       = podconfig.LabelPodName
	labelPodNamespace  = podconfig.LabelPodNamespace
	labelPodUID        = podconfig.LabelPodUID
	labelContainerName = podconfig.LabelContainerName

	annotationMessagePath      = podconfig.AnnotationMessagePath
	annotationMessagePolicy    = podconfig.AnnotationMessagePolicy
	annotationDeletionGrace    = podconfig.AnnotationDeletionGrace
	annotationTerminationGrace = podconfig.AnnotationTerminationGrace
)

var (
	hashOf         = podconfig.HashOf
	restartCountOf = podconfig.RestartCountOf
	secondsOf      = podconfig.SecondsOf
	preStopOf      = podconfig.PreStopOf
	portsOf        = podconfig.PortsOf
)
