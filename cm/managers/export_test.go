package managers

const AnnotationDevices = annotationDevices

var Adopted = adoptedDevices
